import { Type } from '../../runtime/type.ts';
import { ProjectId } from '../input/given.ts';
import { operation } from '../operation.ts';
import { explainSubject } from './explain-subject.ts';
import { toView } from './explanation.ts';
import { ExplanationView } from './views.ts';

export const explainSubjectOperation = operation({
  action: 'explainSubject',
  summary: 'Everything that is known about an invoice, a transaction or an address, by time',
  ...{ method: 'GET', path: '/explain', output: ExplanationView },
  input: Type.Object({
    text: Type.String({ description: 'inv_…, an externalId, the id of a transaction or its link, or an address T…' }),
    projectId: ProjectId,
  }),
  read: ({ text, projectId }) => ({ text, projectId }),
  run: async (deps, actor, asked) =>
    explainSubject({ ...deps, ask: { ...deps, ...(await deps.nodes()) } }, actor, asked),
  view: toView,
});

export const operations = [explainSubjectOperation];
