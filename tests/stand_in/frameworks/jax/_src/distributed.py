class State:
    process_id = 0
    num_processes = 1
    coordinator_address = None

    def initialize(self, coordinator_address=None, num_processes=None, process_id=None, local_device_ids=None,
                   spec_detection_method=None, initialization_timeout=300):
        self.coordinator_address, self.num_processes, self.process_id = coordinator_address, num_processes, process_id


global_state = State()
