/** The workload of an agent, as owners write and read it. */
import { z } from 'zod';
import type { ReadWorkload } from '../admin/agents/workloads.ts';
import { audienceOfAgent } from '../auth/authenticate-workload.ts';
import { ISSUED_BY } from '../config-file/issued-by.ts';
import { ISSUED_BY_SHOWN, issuedByShown } from './issued-by.ts';

export const NewWorkload = z.strictObject(ISSUED_BY);

export const WorkloadShown = z
  .object({
    id: z.guid().describe('names it in audit rows; another one after each change'),
    ...ISSUED_BY_SHOWN,
    last_used_at: ISSUED_BY_SHOWN.last_used_at.describe('accurate to some minutes; null: never'),
  })
  .meta({ id: 'Workload' });

export const workloadShown = (baseUrl: string, agentId: string, one: ReadWorkload): z.output<typeof WorkloadShown> => ({
  id: one.id,
  ...issuedByShown(one, audienceOfAgent(baseUrl, agentId)),
});
