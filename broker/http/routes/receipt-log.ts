/** Serves the receipt log as C2SP tlog-tiles: keys, the newest checkpoint, tiles. For the organisation's own owners and agents. */
import { z } from 'zod';
import type { Principal } from '../../auth/principal.ts';
import { storedUuid } from '../../crypto/ids.ts';
import { TILE_WIDTH } from '../../receipt-log/merkle.ts';
import { newestNote, originOf, readTileBytes, type TileName, verifierKeys } from '../../receipt-log/read-log.ts';
import { Refusal } from '../errors.ts';
import { route } from '../route.ts';

const TEXT = 'text/plain; charset=utf-8';
const BYTES = 'application/octet-stream';
const organisation = z.guid().describe('the uuid of an organisation');
const limit = { name: 'receipt_log', perMinute: 600, per: 'agent' } as const;

/** GET /.well-known/svc-log/{organisation}: does not reveal whether the organisation exists. */
export const receiptLogKeys = route({
  method: 'GET',
  path: '/.well-known/svc-log/{organisation}',
  auth: 'none',
  anyOrigin: true,
  capability: 'receipt_log.keys',
  summary: "Keys that verify checkpoints of an organisation's receipt log, newest first, one verifier key a line.",
  params: { organisation },
  answers: {
    200: {
      description: 'Verifier keys (C2SP signed-note), of retired keys, too.',
      schema: z.string(),
      type: 'text/plain',
      headers: ['Cache-Control'],
    },
  },
  errors: ['not_found'],
  handle: async ({ services: { broker }, params }) => {
    const organisationId = storedUuid(params.organisation);
    if (organisationId === '') throw new Refusal('not_found', 'There is no such log.');
    const keys = await verifierKeys(broker, await originOf(broker, organisationId));
    if (keys.length === 0)
      throw new Refusal('not_found', 'The receipt log has no key yet: it is created with the first checkpoint.');
    const headers = { 'Cache-Control': 'public, max-age=300' };
    return { status: 200, type: TEXT, headers, body: keys.map((key) => `${key}\n`).join('') };
  },
});

/** Returns the id of the organisation, if it is the caller's own. @throws Refusal not_found */
function own(who: Exclude<Principal, { kind: 'local' }>, asked: string): string {
  const organisationId = who.kind === 'agent' ? who.agent.organisation_id : who.organisationId;
  if (storedUuid(asked) !== organisationId)
    throw new Refusal('not_found', 'There is no such log, or it is of another organisation.');
  return organisationId;
}

/** GET /orgs/{organisation}/checkpoint */
export const receiptLogCheckpoint = route({
  method: 'GET',
  path: '/orgs/{organisation}/checkpoint',
  auth: 'agent_or_owner',
  role: 'viewer',
  limit,
  capability: 'receipt_log.checkpoint',
  summary: "The newest checkpoint of the organisation's receipt log.",
  params: { organisation },
  answers: { 200: { description: 'A signed note (C2SP tlog-checkpoint).', schema: z.string(), type: 'text/plain' } },
  errors: ['not_found', 'rate_limited'],
  handle: async ({ services: { broker }, who, params }) => {
    const organisationId = own(who, params.organisation);
    const note = await newestNote(broker, organisationId);
    if (note === undefined) throw new Refusal('not_found', 'There is no checkpoint yet: nothing is in the log.');
    return { status: 200, type: TEXT, body: note };
  },
});

/** Parses `<L>/<N>[.p/<W>]` (C2SP tlog-tiles, Merkle Tree); `entries` in place of a level. */
function readTile(rest: string): TileName | undefined {
  const [, kind, high, low, partial] =
    /^(entries|\d|[1-5]\d|6[0-3])\/((?:x\d{3}\/)*)(\d{3})(?:\.p\/([1-9]\d{0,2}))?$/.exec(rest) ?? [];
  if (kind === undefined || high === undefined || low === undefined) return undefined;
  const index = Number(`${high.replaceAll(/[x/]/g, '')}${low}`);
  const width = partial === undefined ? TILE_WIDTH : Number(partial);
  // Each number has only one valid encoding.
  if (!Number.isSafeInteger(index) || high.startsWith('x000/') || width >= TILE_WIDTH + Number(partial === undefined))
    return undefined;
  return { level: kind === 'entries' ? kind : Number(kind), index, width };
}

/** GET /orgs/{organisation}/tile/{tile} */
export const receiptLogTile = route({
  method: 'GET',
  path: '/orgs/{organisation}/tile/{tile}',
  takesRest: true,
  auth: 'agent_or_owner',
  role: 'viewer',
  limit,
  capability: 'receipt_log.tile',
  summary: "A tile of the organisation's receipt log, or the entries under one.",
  description:
    'As [tlog-tiles](https://c2sp.org/tlog-tiles) names them: `<L>/<N>[.p/<W>]` or `entries/<N>[.p/<W>]`. An entry is the 32 bytes of the `row_hash` of an audit row.',
  params: { organisation, tile: z.string().describe('`0/000`, `1/x001/234`, `0/000.p/7`, `entries/000`, …') },
  answers: {
    200: { description: 'Hashes, or entries.', schema: z.string(), type: BYTES, headers: ['Cache-Control'] },
  },
  errors: ['not_found', 'rate_limited'],
  handle: async ({ services: { broker }, who, params }) => {
    const organisationId = own(who, params.organisation);
    const tile = readTile(params.tile);
    const found = tile && (await readTileBytes(broker, organisationId, tile));
    if (!found) throw new Refusal('not_found', 'There is no such tile: compare with the size in the checkpoint.');
    return {
      status: 200,
      type: BYTES,
      headers: { 'Cache-Control': 'private, max-age=31536000, immutable' },
      body: found,
    };
  },
});
