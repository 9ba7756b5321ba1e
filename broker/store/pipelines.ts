/** Pipelines that plan and apply governance files. */
import type { Db } from './store.ts';
import type { PipelineTable } from './tables/organisations.ts';

/** Inserts a pipeline. */
export async function putPipeline(db: Db, pipeline: PipelineTable): Promise<void> {
  await db.insertInto('pipelines').values(pipeline).execute();
}

/** An organisation's pipelines, by name. */
export async function listPipelines(db: Db, organisationId: string): Promise<PipelineTable[]> {
  return await db
    .selectFrom('pipelines')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('name')
    .execute();
}

/** One pipeline by uuid, of any organisation; or undefined. */
export async function findPipeline(db: Db, id: string): Promise<PipelineTable | undefined> {
  return await db.selectFrom('pipelines').selectAll().where('id', '=', id).executeTakeFirst();
}

type Ref = Pick<PipelineTable, 'organisation_id' | 'id'>;

/** Stores when a pipeline was last authenticated. */
export async function notePipelineUse(db: Db, { organisation_id, id }: Ref, at: number): Promise<void> {
  await db
    .updateTable('pipelines')
    .set({ last_used_at: at })
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .execute();
}

/** Deletes a pipeline; its next request is refused. */
export async function deletePipeline(db: Db, { organisation_id, id }: Ref): Promise<void> {
  await db.deleteFrom('pipelines').where('organisation_id', '=', organisation_id).where('id', '=', id).execute();
}
