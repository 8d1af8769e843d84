from ._src.profiler import StepTraceAnnotation, TraceAnnotation

__all__ = ["StepTraceAnnotation", "TraceAnnotation"]
