import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export type Metrics = ReturnType<typeof createMetrics>;

/** Creates the Prometheus metrics of one process. Their names contain the units. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // These gauges are sums of others, and their suffix is reserved for counters.
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`);
  const labelled = labellersFor(registry);
  return {
    registry,
    ...requestMetrics(labelled),
    ...chainMetrics(labelled),
    ...nodeMetrics(labelled),
    ...networkMetrics(labelled),
    ...projectMetrics(labelled),
    ...outcomeMetrics(labelled),
    ...pageMetrics(labelled),
    ...backupMetrics(labelled),
    auditEntries: labelled.gauge()('quittance_audit_entries', 'Number of the newest entry of the audit log'),
    poolConnections: labelled.gauge('state')(
      'quittance_database_connections',
      'Connections of the database pool by state: total, idle; waiting counts requests without one',
    ),
  };
}

/** Creates these series of a counter with the value 0, because to Prometheus a series that starts above 0 hasn't increased. */
export function beginAtZero<Label extends string>(
  counter: Counter<Label>,
  series: readonly Record<Label, string>[],
): void {
  for (const labels of series) counter.inc(labels, 0);
}

type Labellers = ReturnType<typeof labellersFor>;

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

function requestMetrics(labelled: Labellers) {
  return {
    requestSeconds: labelled.histogram('method', 'route', 'status')(
      'quittance_http_request_seconds',
      'Duration of HTTP requests; its count is the request rate',
      [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    ),
    requestsShed: labelled.counter('line', 'reason')(
      'quittance_http_shed_total',
      'Requests answered 503 OVERLOADED, by line (api, page, live, and stranger: without a key that is known) and reason: lag of the event loop, line full, waited too late',
    ),
    requestsUnlogged: labelled.counter('reason')(
      'quittance_requests_unlogged_total',
      'Requests that are missing in the log of requests, by reason: flood (more were turned away than are kept of a minute), full (the database does not keep up), failed',
    ),
    eventWaits: labelled.gauge()(
      'quittance_event_waits',
      'Requests of the event feed that this process holds back until there is an event; 500 at most',
    ),
  };
}

function chainMetrics(labelled: Labellers) {
  const gauge = labelled.gauge('network');
  return {
    chainHeadNumber: gauge('quittance_chain_head_block', 'Number of the newest block that the node reports'),
    chainSolidNumber: gauge(
      'quittance_chain_solid_block',
      'Number of the newest irreversible block that the node reports',
    ),
    chainProcessedNumber: gauge(
      'quittance_chain_processed_block',
      'Number of the newest irreversible block whose transfers are recorded',
    ),
    chainLagBlocks: gauge('quittance_chain_lag_blocks', 'Irreversible blocks that are not yet recorded'),
    chainOwnSolidNumber: gauge(
      'quittance_chain_own_solid_block',
      'Number of the newest block that is irreversible by the headers that were verified here',
    ),
    chainCatchUpRate: gauge(
      'quittance_chain_catch_up_blocks_per_second',
      'Blocks that are verified each second while catching up, 0 when caught up',
    ),
    chainCatchUpSeconds: gauge(
      'quittance_chain_catch_up_seconds_left',
      'Time until the service has caught up at its present rate, 0 when caught up',
    ),
    chainBlind: gauge('quittance_chain_blind', '1 while no node shows a fresh chain, else 0'),
  };
}

function nodeMetrics(labelled: Labellers) {
  const gauge = labelled.gauge('network', 'node');
  return {
    nodeRequests: labelled.counter(
      'network',
      'node',
      'outcome',
    )(
      'quittance_node_requests_total',
      'Requests to TRON nodes by outcome: ok, refused, unsent (out of budget, paused, or too many waiting)',
    ),
    nodeAnswerSeconds: labelled.histogram('network', 'node')(
      'quittance_node_answer_seconds',
      'Duration of requests to TRON nodes that were answered, without their wait for a turn',
      [0.01, 0.05, 0.2, 0.5, 1, 2, 5],
    ),
    nodePaused: gauge(
      'quittance_node_paused',
      '1 while a TRON node is not asked: paused, out of its budget, or of the wrong network',
    ),
    nodeBudgetUsed: gauge(
      'quittance_node_daily_budget_used_ratio',
      "Share of a TRON node's requests per UTC day that this process has used since it started",
    ),
    blockVerifyFailures: labelled.counter(
      'network',
      'node',
      'problem',
    )('quittance_block_verify_failures_total', 'Blocks as a TRON node showed them that were not accepted, by problem'),
  };
}

function networkMetrics(labelled: Labellers) {
  return {
    balanceDifference: labelled.gauge('network', 'address')(
      'quittance_balance_difference_usdt',
      'USDT of an address on the chain less what the recorded transfers say, 0 when the books balance',
    ),
    troubles: labelled.gauge('kind')(
      'quittance_troubles',
      'What this process finds wrong with where it works, by kind: also where the alarm cannot be written',
    ),
    alarmsOpen: labelled.gauge('network', 'kind')('quittance_alarms_open', 'Alarms that nobody has closed, by kind'),
    inventoryRows: labelled.gauge('network', 'subject')(
      'quittance_inventory_rows',
      'Rows that are known to be there: invoices, transfers and events. It never falls while nobody deletes any',
    ),
    watcherFailures: labelled.counter('network', 'code')(
      'quittance_watcher_failures_total',
      'Rounds of the watcher that failed and are tried again, by error code',
    ),
  };
}

function projectMetrics(labelled: Labellers) {
  const counter = labelled.counter('network', 'project');
  const gauge = labelled.gauge('network', 'project');
  return {
    capacityFreeRatio: gauge(
      'quittance_capacity_free_ratio',
      'Share of payable amounts that are free, of the scarcest amount in use; absent while the project has no use in 30 days',
    ),
    capacityDaysLeft: gauge(
      'quittance_capacity_days_left',
      'Days until the first amount in use has no free payable amount, at the higher rate of the last 7 and 30 days; absent while the project has no use in 30 days',
    ),
    amountUnavailable: counter(
      'quittance_amount_unavailable_total',
      'Requests for an invoice that were refused because no payable amount was free',
    ),
    unpaidRefused: counter(
      'quittance_unpaid_refused_total',
      'Requests for an invoice that were refused because the project has as many unpaid invoices as it may have',
    ),
  };
}

function outcomeMetrics(labelled: Labellers) {
  return {
    transfers: labelled.counter('network', 'kind')(
      'quittance_transfers_total',
      'Irreversible incoming transfers by what they were',
    ),
    deliveryAttempts: labelled.counter('outcome')(
      'quittance_webhook_attempts_total',
      'Webhook attempts by outcome: delivered, retried, dead',
    ),
    oldestUndeliveredSeconds: labelled.gauge()(
      'quittance_webhook_oldest_undelivered_seconds',
      'Age of the oldest event that is still to be delivered, 0 if there is none',
    ),
  };
}

function backupMetrics(labelled: Labellers) {
  const backupAge = labelled.gauge()(
    'quittance_backup_age_seconds',
    'Age of the newest backup of QUITTANCE_BACKUP_DIR that was verified; absent where there is none, and in processes that make none',
  );
  // Without labels, the gauge would start at 0, as if a backup had just been made.
  backupAge.remove();
  return { backupAge };
}

function pageMetrics(labelled: Labellers) {
  return {
    openPages: labelled.gauge()('quittance_open_pages', "Payer's pages that are open and updated live by this process"),
    livePageQueries: labelled.counter('kind')(
      'quittance_live_page_queries_total',
      "Database queries for live updates of payer's pages, by kind: invoices (up to 500 in one), heads",
    ),
  };
}
