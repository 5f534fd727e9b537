"""Past one machine: functions learned on partitions become one, and a bank spreads over the workers of Dask."""
from onlinekernels.parallel.combining import combine
from onlinekernels.parallel.partitioned import PartitionedBank

__all__ = ["PartitionedBank", "combine"]
