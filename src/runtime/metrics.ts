import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export type Metrics = ReturnType<typeof createMetrics>;

/** The Prometheus metrics of one process. Units stand in the names. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    requestSeconds: new Histogram({
      name: 'quittance_http_request_seconds',
      help: 'Duration of HTTP requests; its count is the request rate',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    }),
    requestsShed: new Counter({
      name: 'quittance_http_shed_total',
      help: 'Requests answered 503 OVERLOADED, by line (api, page, live, and stranger: without a key that is known) and reason: lag of the event loop, line full, waited too late',
      labelNames: ['line', 'reason'],
      registers,
    }),
    chainHeadNumber: new Gauge({
      name: 'quittance_chain_head_block',
      help: 'Number of the newest block that the node reports',
      labelNames: ['network'],
      registers,
    }),
    chainSolidNumber: new Gauge({
      name: 'quittance_chain_solid_block',
      help: 'Number of the newest irreversible block that the node reports',
      labelNames: ['network'],
      registers,
    }),
    chainProcessedNumber: new Gauge({
      name: 'quittance_chain_processed_block',
      help: 'Number of the newest irreversible block whose transfers are recorded',
      labelNames: ['network'],
      registers,
    }),
    chainLagBlocks: new Gauge({
      name: 'quittance_chain_lag_blocks',
      help: 'Irreversible blocks that are not yet recorded',
      labelNames: ['network'],
      registers,
    }),
    chainOwnSolidNumber: new Gauge({
      name: 'quittance_chain_own_solid_block',
      help: 'Number of the newest block that is irreversible by the headers that were verified here',
      labelNames: ['network'],
      registers,
    }),
    chainCatchUpRate: new Gauge({
      name: 'quittance_chain_catch_up_blocks_per_second',
      help: 'Blocks that are verified each second while catching up, 0 when caught up',
      labelNames: ['network'],
      registers,
    }),
    chainCatchUpSeconds: new Gauge({
      name: 'quittance_chain_catch_up_seconds_left',
      help: 'Time until the service has caught up at its present rate, 0 when caught up',
      labelNames: ['network'],
      registers,
    }),
    chainBlind: new Gauge({
      name: 'quittance_chain_blind',
      help: '1 while no node shows a fresh chain, else 0',
      labelNames: ['network'],
      registers,
    }),
    nodeRequests: new Counter({
      name: 'quittance_node_requests_total',
      help: 'Requests to TRON nodes by outcome: ok, refused, unsent (out of budget, paused, or too many waiting)',
      labelNames: ['network', 'node', 'outcome'],
      registers,
    }),
    nodeAnswerSeconds: new Histogram({
      name: 'quittance_node_answer_seconds',
      help: 'Duration of requests to TRON nodes that were answered, without their wait for a turn',
      labelNames: ['network', 'node'],
      buckets: [0.01, 0.05, 0.2, 0.5, 1, 2, 5],
      registers,
    }),
    nodePaused: new Gauge({
      name: 'quittance_node_paused',
      help: '1 while a TRON node is not asked: paused, out of its budget, or of the wrong network',
      labelNames: ['network', 'node'],
      registers,
    }),
    nodeBudgetUsed: new Gauge({
      name: 'quittance_node_daily_budget_used_ratio',
      help: "Share of a TRON node's requests per UTC day that this process has used since it started",
      labelNames: ['network', 'node'],
      registers,
    }),
    blockVerifyFailures: new Counter({
      name: 'quittance_block_verify_failures_total',
      help: 'Blocks as a TRON node showed them that were not accepted, by problem',
      labelNames: ['network', 'node', 'problem'],
      registers,
    }),
    balanceDifference: new Gauge({
      name: 'quittance_balance_difference_usdt',
      help: 'USDT of an address on the chain less what the recorded transfers say, 0 when the books balance',
      labelNames: ['network', 'address'],
      registers,
    }),
    alarmsOpen: new Gauge({
      name: 'quittance_alarms_open',
      help: 'Alarms that nobody has closed, by kind',
      labelNames: ['network', 'kind'],
      registers,
    }),
    watcherFailures: new Counter({
      name: 'quittance_watcher_failures_total',
      help: 'Rounds of the watcher that failed and are tried again, by error code',
      labelNames: ['network', 'code'],
      registers,
    }),
    capacityFreeRatio: new Gauge({
      name: 'quittance_capacity_free_ratio',
      help: 'Share of payable amounts that are free, of the scarcest amount in use; absent while the project has no use in 30 days',
      labelNames: ['network', 'project'],
      registers,
    }),
    capacityDaysLeft: new Gauge({
      name: 'quittance_capacity_days_left',
      help: 'Days until the first amount in use has no free payable amount, at the higher rate of the last 7 and 30 days; absent while the project has no use in 30 days',
      labelNames: ['network', 'project'],
      registers,
    }),
    amountUnavailable: new Counter({
      name: 'quittance_amount_unavailable_total',
      help: 'Requests for an invoice that were refused because no payable amount was free',
      labelNames: ['network', 'project'],
      registers,
    }),
    unpaidRefused: new Counter({
      name: 'quittance_unpaid_refused_total',
      help: 'Requests for an invoice that were refused because the project has as many unpaid invoices as it may have',
      labelNames: ['network', 'project'],
      registers,
    }),
    transfers: new Counter({
      name: 'quittance_transfers_total',
      help: 'Irreversible incoming transfers by what they were',
      labelNames: ['network', 'kind'],
      registers,
    }),
    deliveryAttempts: new Counter({
      name: 'quittance_webhook_attempts_total',
      help: 'Webhook attempts by outcome: delivered, retried, dead',
      labelNames: ['outcome'],
      registers,
    }),
    oldestUndeliveredSeconds: new Gauge({
      name: 'quittance_webhook_oldest_undelivered_seconds',
      help: 'Age of the oldest event that is still to be delivered, 0 if there is none',
      registers,
    }),
    openPages: new Gauge({
      name: 'quittance_open_pages',
      help: "Payer's pages that are open and updated live by this process",
      registers,
    }),
    livePageQueries: new Counter({
      name: 'quittance_live_page_queries_total',
      help: "Database queries for live updates of payer's pages, by kind: invoices (up to 500 in one), heads",
      labelNames: ['kind'],
      registers,
    }),
    poolConnections: new Gauge({
      name: 'quittance_database_connections',
      help: 'Connections of the database pool by state: total, idle; waiting counts requests without one',
      labelNames: ['state'],
      registers,
    }),
  };
}
