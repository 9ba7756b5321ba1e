/** Reads audit rows for commands. */
import type { AuditRow } from '../../broker/console/answers.ts';
import type { OwnerApi } from '../owner-api.ts';
import type { Names } from './row-line.ts';

export type RowFilter = {
  agent?: string;
  platform?: string;
  result?: string;
  since?: string;
  kind?: string;
  reason?: string;
  text?: string;
};

/** The broker's limit for one page. */
const PAGE = 200;

/** Returns rows, newest first; at most `limit`, which may be Infinity. `filter.agent`: an agent id. `filter.result`: `change` for changes by owners. */
export async function readRows(api: OwnerApi, filter: RowFilter, limit: number): Promise<AuditRow[]> {
  const query = queryOf(filter);
  const found: AuditRow[] = [];
  for (let before: string | undefined; found.length < limit; ) {
    query.set('limit', String(Math.min(PAGE, limit - found.length)));
    if (before !== undefined) query.set('before', before);
    const { rows, next } = await api.ask('GET', `/owner/audit?${query}`);
    found.push(...rows);
    if (next === null) break;
    before = next;
  }
  return found;
}

/** Formats the filter as a query of the owner API. */
export function queryOf(filter: RowFilter): URLSearchParams {
  const query = new URLSearchParams();
  for (const name of ['agent', 'platform', 'since', 'kind', 'reason', 'text'] as const) {
    const value = filter[name];
    if (value !== undefined) query.set(name, value);
  }
  if (filter.result === 'change') query.set('kind', 'event');
  else if (filter.result !== undefined) query.set('result', filter.result);
  return query;
}

/** Reads the addresses of owners by their id, also of former ones. */
export async function readOwners(api: OwnerApi): Promise<Names> {
  const { owners, former } = await api.ask('GET', '/owner/owners');
  return new Map([...former, ...owners].map(({ id, email }) => [id, email]));
}
