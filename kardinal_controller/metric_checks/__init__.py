"""Query the metrics that gates read and that promotions are verified by.

demand       the gates that wait for a check, and what they read
reconciler   asks the servers for as long as something waits, and writes results
servers      which server a namespace may ask, and one request to it
secrets      the credentials for a server
"""

from kardinal_controller.metric_checks.demand import MetricDemand
from kardinal_controller.metric_checks.reconciler import MetricCheckReconciler
from kardinal_controller.metric_checks.servers import FLAG, MetricServers

__all__ = ["FLAG", "MetricCheckReconciler", "MetricDemand", "MetricServers"]
