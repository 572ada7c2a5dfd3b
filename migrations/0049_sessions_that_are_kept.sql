-- Deletes up to 1,000 rows of each kind that grow old: sessions that began before, invitations and challenges that ended before. Whatever the
-- caller asks for, a row of the last eight days stays: a session ends after seven, so a role that may only call this can't remove an ended one
-- and insert it again as active.
create or replace function forget_old_sessions(before timestamptz) returns void language sql security definer
begin atomic
  delete from sessions where id in (
    select id from sessions where created_at < least(before, now() - interval '8 days') order by created_at limit 1000);
  delete from invitations where sha256 in (
    select sha256 from invitations where expires_at < least(before, now() - interval '8 days') limit 1000);
  delete from spent_challenges where sha256 in (
    select sha256 from spent_challenges where expires_at < least(before, now() - interval '8 days') order by expires_at limit 1000);
end;
