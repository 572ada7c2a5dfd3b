-- The schema for an engine that spreads rows over machines by project_id: every key of a table that is spread holds it. Runs in
-- an empty database that "quittance migrate" has made. The service does not run on the outcome yet: docs/growth.md says why.

-- What refers to keys that change.
alter table invoices drop constraint invoices_paid_transfer_id_project_id_id_fkey;
alter table transfer_annulments
  drop constraint transfer_annulments_transfer_id_project_id_fkey,
  drop constraint transfer_annulments_transfer_id_project_id_invoice_id_fkey;
alter table transfer_resolutions
  drop constraint transfer_resolutions_transfer_id_project_id_fkey,
  drop constraint transfer_resolutions_event_id_fkey;
alter table transfer_refunds
  drop constraint transfer_refunds_transfer_id_project_id_fkey,
  drop constraint transfer_refunds_network_tx_id_log_index_fkey;
alter table events drop constraint events_transfer_id_fkey;
alter table delivery_attempts drop constraint delivery_attempts_event_id_endpoint_id_fkey;

-- The same promise: an address belongs to one project for life.
alter table invoices
  drop constraint invoices_reservation,
  add constraint invoices_reservation unique (project_id, address_id, payable_micro);
-- A weaker one: two projects could draw the same 128 random bits. A link must name its project, or every machine is asked.
alter table invoices
  drop constraint invoices_checkout_token,
  add constraint invoices_checkout_token unique (project_id, checkout_token);

-- The same promise: a log pays one address, and that is of one project. addresses (network, account) sees to it, see below.
alter table transfers
  drop constraint transfers_once,
  add constraint transfers_once unique (project_id, network, tx_id, log_index, correction),
  drop constraint transfers_id_project_id_key,
  drop constraint transfers_pkey,
  add primary key (project_id, id);
alter table transfer_annulments drop constraint transfer_annulments_pkey, add primary key (project_id, transfer_id);
alter table transfer_resolutions
  drop constraint transfer_resolutions_pkey,
  drop constraint transfer_resolutions_event_id_key,
  add primary key (project_id, id),
  add unique (project_id, event_id);
-- That a refund is of a transfer that left is promised by what reads it: the key of those holds the number of a correction.
alter table transfer_refunds
  drop constraint transfer_refunds_pkey,
  drop constraint transfer_refunds_network_tx_id_log_index_key,
  add primary key (project_id, transfer_id),
  add unique (project_id, network, tx_id, log_index);

-- Tables that inherit cannot be spread: further records of a log stand beside the first, as those of transfers do.
drop table outgoing_corrections;
alter table outgoing_transfers
  drop constraint outgoing_transfers_first,
  drop constraint outgoing_transfers_pkey,
  add primary key (project_id, network, tx_id, log_index, correction);
alter table outgoing_annulments
  add column project_id uuid not null,
  drop constraint outgoing_annulments_pkey,
  add primary key (project_id, network, tx_id, log_index, correction);

alter table sightings drop constraint sightings_pkey, add primary key (project_id, network, tx_id, log_index);
alter table events drop constraint events_pkey, add primary key (project_id, id);
alter table deliveries drop constraint deliveries_pkey, add primary key (project_id, event_id, endpoint_id);
alter table delivery_attempts
  add column project_id uuid not null,
  drop constraint delivery_attempts_pkey,
  add primary key (project_id, event_id, endpoint_id, attempt);

-- The promises between tables again, each within a project.
alter table invoices add foreign key (project_id, paid_transfer_id, id) references transfers (project_id, id, invoice_id)
  deferrable initially deferred;
alter table transfer_annulments
  add foreign key (project_id, transfer_id) references transfers (project_id, id),
  add foreign key (project_id, transfer_id, invoice_id) references transfers (project_id, id, invoice_id);
alter table transfer_resolutions
  add foreign key (project_id, transfer_id) references transfers (project_id, id),
  add foreign key (project_id, event_id) references events (project_id, id);
alter table transfer_refunds add foreign key (project_id, transfer_id) references transfers (project_id, id);
alter table events add foreign key (project_id, transfer_id) references transfers (project_id, id);
alter table delivery_attempts add foreign key (project_id, event_id, endpoint_id)
  references deliveries (project_id, event_id, endpoint_id);

-- With Citus, after the triggers are dealt with (docs/growth.md). Small tables stand on every machine as a whole, and keep their keys.
-- select create_reference_table('projects');
-- select create_reference_table('account_keys');
-- select create_reference_table('address_changes');
-- select create_reference_table('addresses');
-- select create_reference_table('api_keys');
-- select create_reference_table('admin_keys');
-- select create_reference_table('arrivals');
-- select create_reference_table('balance_checks');
-- select create_reference_table('head_blocks');
-- select create_reference_table('operator_actions');
-- select create_reference_table('webhook_endpoints');
-- select create_reference_table('webhook_secrets');
-- select create_distributed_table('invoices', 'project_id');
-- select create_distributed_table('transfers', 'project_id');
-- select create_distributed_table('transfer_annulments', 'project_id');
-- select create_distributed_table('transfer_resolutions', 'project_id');
-- select create_distributed_table('transfer_refunds', 'project_id');
-- select create_distributed_table('adapter_orders', 'project_id');
-- select create_distributed_table('outgoing_transfers', 'project_id');
-- select create_distributed_table('outgoing_annulments', 'project_id');
-- select create_distributed_table('sightings', 'project_id');
-- select create_distributed_table('events', 'project_id');
-- select create_distributed_table('untold_transfers', 'project_id');
-- select create_distributed_table('event_streams', 'project_id');
-- select create_distributed_table('deliveries', 'project_id');
-- select create_distributed_table('delivery_attempts', 'project_id');
-- select create_distributed_table('allocation_hints', 'project_id');
-- select create_distributed_table('refused_amounts', 'project_id');
-- A log that nothing refers to stays on the machine that the service speaks to.
-- select citus_add_local_table_to_metadata('requests');
