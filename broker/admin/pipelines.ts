/** The pipelines that may plan and apply governance files, identified by the issuer and the subject of their tokens. */
import { type Changing, type ChangingOwner, recordInTurn } from '../audit/record-change.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { deletePipeline, listPipelines as listStored, putPipeline } from '../store/pipelines.ts';
import type { Db } from '../store/store.ts';
import type { PipelineTable } from '../store/tables/organisations.ts';
import { ChangeRefused } from './refused.ts';

const MAX = 100;

export type ListedPipeline = PipelineTable;

/** Lists pipelines by name. */
export const listPipelines = (db: Db, organisationId: string): Promise<ListedPipeline[]> =>
  listStored(db, organisationId);

export type AddedPipeline = Pick<PipelineTable, 'name' | 'role' | 'issuer' | 'subject' | 'jwks_uri'>;

/** Trusts a pipeline. Throws ChangeRefused, or AuditUnavailable: then nothing is changed. */
export async function addPipeline(services: Changing, by: ChangingOwner, added: AddedPipeline): Promise<PipelineTable> {
  const { organisation_id } = by.owner;
  return await recordInTurn(services, by, { reason: 'pipeline_added', detail: added.name }, async (db, note) => {
    const before = await listStored(db, organisation_id);
    if (before.some(({ name }) => name === added.name))
      throw new ChangeRefused(
        'conflict',
        `There is a pipeline "${added.name}" already. Remove it first, or choose another name.`,
      );
    if (before.length >= MAX)
      throw new ChangeRefused('conflict', `The organisation has ${MAX} pipelines already. Remove one first.`);
    const pipeline = {
      ...added,
      organisation_id,
      id: uuidv4(),
      created_at: services.broker.clock(),
      last_used_at: null,
    };
    await putPipeline(db, pipeline);
    const { id, role, issuer, subject, jwks_uri } = pipeline;
    note({ pipeline: id, role, issuer, subject, jwks_uri });
    return pipeline;
  });
}

/** Removes the trust in a pipeline: its next request is refused. Throws ChangeRefused, or AuditUnavailable: then nothing is changed. */
export async function removePipeline(services: Changing, by: ChangingOwner, id: string): Promise<void> {
  const { organisation_id: organisationId } = by.owner;
  const find = async (db: Db): Promise<PipelineTable> => {
    const found = (await listStored(db, organisationId)).find((one) => one.id === id);
    if (!found) throw new ChangeRefused('not_found', 'The organisation has no such pipeline.');
    return found;
  };
  const { name } = await find(services.broker.store.db);
  await recordInTurn(services, by, { reason: 'pipeline_removed', detail: name }, async (db, note) => {
    await deletePipeline(db, await find(db));
    note({ pipeline: id });
  });
}
