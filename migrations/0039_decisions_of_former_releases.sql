-- While an upgrade is under way, processes of former releases make decisions without an event. A process of this release writes that its
-- decision is told, and needs the event.
alter table transfer_resolutions alter column is_untold set default true;
