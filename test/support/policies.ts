import { randomBytes } from 'node:crypto';
import type { Policy } from '../../src/core/domain/policy.ts';
import { runSql } from '../contract/sql.ts';
import type { TestProject, TestService } from './service.ts';

export const setPolicy = (service: Pick<TestService, 'ownerString'>, project: TestProject, policy: Policy) =>
  runSql(service, 'update projects set policy = $2 where id = $1', [project.id, policy]);

/** Adds an address of a policy to a project. No one has its key. */
export function addAddress(service: Pick<TestService, 'ownerString'>, project: TestProject, policy: Policy) {
  return runSql(
    service,
    `insert into addresses (id, project_id, network, account, address, policy, position)
     select gen_random_uuid(), p.id, p.network, $3, tron_address($3), $2,
       (select coalesce(max(position), 0) + 1 from addresses where project_id = p.id)
     from projects p where p.id = $1`,
    [project.id, policy, randomBytes(20)],
  );
}
