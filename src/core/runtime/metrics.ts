import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export type Metrics = ReturnType<typeof createMetrics>;

/** Creates one process's Prometheus metrics. Their names contain the units. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // Remove these gauges, because they only repeat the sums of other gauges, and their suffix is reserved for counters.
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`);
  const { counter, gauge, histogram } = labellersFor(registry);
  const metrics = {
    registry,
    requestSeconds: histogram('method', 'route', 'status')(
      'quittance_http_request_seconds',
      'Duration of HTTP requests; the rate of its count is the request rate',
      [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    ),
    requestsShed: counter('line', 'reason')(
      'quittance_http_shed_total',
      'Requests rejected with 503 OVERLOADED, by line (api, page, live, and stranger: without a known key) and reason: event loop lag, line full, waited too long',
    ),
    requestsUnlogged: counter('reason')(
      'quittance_requests_unlogged_total',
      'Requests missing from the request log, by reason: flood (more were rejected than are kept per minute), full (the database cannot keep up), failed',
    ),
    eventWaits: gauge()(
      'quittance_event_waits',
      'Event feed requests that are waiting in this process for an event; at most 500',
    ),
    chainHeadNumber: gauge('network')('quittance_chain_head_block', 'Number of the newest block that the node reports'),
    chainSolidNumber: gauge('network')(
      'quittance_chain_solid_block',
      'Number of the newest irreversible block that the node reports',
    ),
    chainProcessedNumber: gauge('network')(
      'quittance_chain_processed_block',
      'Number of the newest irreversible block whose transfers are recorded',
    ),
    chainLagBlocks: gauge('network')('quittance_chain_lag_blocks', 'Irreversible blocks that are not yet recorded'),
    chainOwnSolidNumber: gauge('network')(
      'quittance_chain_own_solid_block',
      'Number of the newest block that is irreversible according to the headers verified here',
    ),
    chainCatchUpRate: gauge('network')(
      'quittance_chain_catch_up_blocks_per_second',
      'Blocks verified per second while catching up, 0 when caught up',
    ),
    chainCatchUpSeconds: gauge('network')(
      'quittance_chain_catch_up_seconds_left',
      'Time until the service has caught up at the current rate, 0 when caught up or not getting closer',
    ),
    chainBlind: gauge('network')('quittance_chain_blind', '1 while no node returns new blocks, otherwise 0'),
    nodeRequests: counter(
      'network',
      'node',
      'outcome',
    )(
      'quittance_node_requests_total',
      'Requests to TRON nodes by outcome: ok, refused, unsent (out of budget, paused, or too many waiting)',
    ),
    nodeAnswerSeconds: histogram('network', 'node')(
      'quittance_node_answer_seconds',
      'Duration of requests to TRON nodes that got a response, excluding the time in the queue',
      [0.01, 0.05, 0.2, 0.5, 1, 2, 5],
    ),
    nodePaused: gauge('network', 'node')(
      'quittance_node_paused',
      '1 while Quittance does not use a TRON node: paused, out of its budget, or on the wrong network',
    ),
    nodeBudgetUsed: gauge('network', 'node')(
      'quittance_node_daily_budget_used_ratio',
      "Share of a TRON node's requests per UTC day that this process has used since it started",
    ),
    blockVerifyFailures: counter(
      'network',
      'node',
      'problem',
    )('quittance_block_verify_failures_total', 'Blocks from a TRON node that were rejected, by problem'),
    balanceDifference: gauge('network', 'address')(
      'quittance_balance_difference_usdt',
      'Balance of an address on the chain minus its balance in the ledger, in USDT; 0 if they match',
    ),
    troubles: gauge('kind')(
      'quittance_troubles',
      'Problems that this process finds in its environment, by kind, even if the alarm cannot be written',
    ),
    alarmsOpen: gauge('network', 'kind')('quittance_alarms_open', 'Open alarms, by kind'),
    inventoryRows: gauge('network', 'subject')(
      'quittance_inventory_rows',
      'Rows known to exist: invoices, transfers and events. It falls only if someone deletes rows',
    ),
    watcherFailures: counter('network', 'code')(
      'quittance_watcher_failures_total',
      'Watcher rounds that failed and are retried, by error code',
    ),
    capacityFreeRatio: gauge('network', 'project')(
      'quittance_capacity_free_ratio',
      'Share of free payable amounts, of the scarcest amount in use; absent if the project had no invoices in 30 days',
    ),
    capacityDaysLeft: gauge('network', 'project')(
      'quittance_capacity_days_left',
      'Days until the first amount in use has no free payable amount, at the higher of the rates in the last 7 and 30 days; absent if the project had no invoices in 30 days',
    ),
    amountUnavailable: counter('network', 'project')(
      'quittance_amount_unavailable_total',
      'Requests for an invoice that were rejected because no payable amount was free',
    ),
    unpaidRefused: counter('network', 'project')(
      'quittance_unpaid_refused_total',
      'Requests for an invoice that were rejected because the project had reached its limit of unpaid invoices',
    ),
    transfers: counter('network', 'kind')('quittance_transfers_total', 'Irreversible incoming transfers by kind'),
    deliveryAttempts: counter('outcome')(
      'quittance_webhook_attempts_total',
      'Webhook attempts by outcome: delivered, retried, dead',
    ),
    oldestUndeliveredSeconds: gauge()(
      'quittance_webhook_oldest_undelivered_seconds',
      'Age of the oldest event that is not yet delivered, 0 if there is none',
    ),
    openPages: gauge()('quittance_open_pages', 'Open payment pages that this process updates live'),
    livePageQueries: counter('kind')(
      'quittance_live_page_queries_total',
      'Database queries for live updates of payment pages, by kind: invoices (up to 500 in one), heads',
    ),
    backupAge: gauge()(
      'quittance_backup_age_seconds',
      'Age of the newest verified backup in QUITTANCE_BACKUP_DIR; absent if there is none, and in processes that create none',
    ),
    auditEntries: gauge()('quittance_audit_entries', 'Number of the newest audit log entry'),
    poolConnections: gauge('state')(
      'quittance_database_connections',
      'Connections in the database pool by state: total, idle, or waiting (requests for a connection)',
    ),
  };
  // Without labels, the gauge would start at 0, as if a backup had just been made.
  metrics.backupAge.remove();
  return metrics;
}

/** Creates these counter series with the value 0, because Prometheus doesn't see an increase in a series that starts above 0. */
export function beginAtZero<Label extends string>(
  counter: Counter<Label>,
  series: readonly Record<Label, string>[],
): void {
  for (const labels of series) counter.inc(labels, 0);
}

/** Returns functions that accept label names and return a factory for metrics with these labels. */
function labellersFor(registry: Registry) {
  const registers = [registry];
  return {
    counter:
      <Label extends string>(...labelNames: Label[]) =>
      (name: string, help: string) =>
        new Counter({ name, help, labelNames, registers }),
    gauge:
      <Label extends string>(...labelNames: Label[]) =>
      (name: string, help: string) =>
        new Gauge({ name, help, labelNames, registers }),
    histogram:
      <Label extends string>(...labelNames: Label[]) =>
      (name: string, help: string, buckets: number[]) =>
        new Histogram({ name, help, buckets, labelNames, registers }),
  };
}
