/**
 * What audit rows are about, in sentences. Rows hold no bodies, and a sentence would cost a read's row a fifth of its bytes: so a row
 * of a held call has the sentence that was stored with that (of one that was corrected all but the first), and any other one is said again from method and path by the platform's
 * manifest of today, when somebody reads it. Nothing of it is on the way of a call.
 */
import type { Uses } from '../broker.ts';
import type { Compiled } from '../facts/compiled.ts';
import type { Sentence } from '../sentences/part.ts';
import { type Platform, sentenceOfPath } from '../sentences/sentences.ts';
import { findSentences } from '../store/approvals.ts';
import type { AuditRow } from '../store/audit.ts';
import { findPlatform } from '../store/governed-versions.ts';
import { sentenceOfHeld } from './held-sentence.ts';

type Row = Pick<AuditRow, 'id' | 'approval_id' | 'platform_id' | 'method' | 'path'>;

/** By the id of the row; of a row that names no call there is none. */
export async function sentencesOfRows(
  { broker, compiled }: Uses<'log' | 'store' | 'vault'> & { compiled: Compiled },
  organisationId: string,
  rows: readonly Row[],
): Promise<ReadonlyMap<string, Sentence>> {
  const { db } = broker.store;
  const approvals = [...new Set(rows.flatMap(({ approval_id }) => approval_id ?? []))];
  const held = new Map((await findSentences(db, organisationId, approvals)).map((one) => [one.id, one]));
  const platforms = new Map<string, Platform | undefined>();
  const platformOf = async (id: string): Promise<Platform | undefined> => {
    const found = await findPlatform(db, organisationId, id);
    if (!found) return undefined;
    try {
      const { rules, sentences } = await compiled.platform(organisationId, id, found.version);
      return { rules, sentences: sentences() };
    } catch (error) {
      // No call of such a platform is made; what was made of it can be read all the same.
      broker.log.warn({ err: error, platform: id }, 'the manifest of a platform cannot be read');
      return undefined;
    }
  };
  const said = new Map<string, Sentence>();
  for (const { id, approval_id, platform_id, method, path } of rows) {
    const call = approval_id === null ? undefined : held.get(approval_id);
    // What an owner made of it is not what its agent asked.
    const isAsked = call !== undefined && call.corrected_at !== null && id === call.audit_id;
    if (call && !isAsked) said.set(id, sentenceOfHeld(broker, call));
    else if (method !== null && path !== null && platform_id !== null) {
      if (!platforms.has(platform_id)) platforms.set(platform_id, await platformOf(platform_id));
      said.set(id, sentenceOfPath(platforms.get(platform_id), { method, path }));
    }
  }
  return said;
}
