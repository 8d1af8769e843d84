class Tensor:
    def backward(self, *unused):
        return None
