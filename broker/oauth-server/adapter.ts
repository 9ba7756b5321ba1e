/** Storage adapter of the OAuth library: its state is in the broker's store, so that any replica can continue a flow. */
import type { IncomingMessage } from 'node:http';
import Provider, { type Adapter, errors } from 'oidc-provider';
import { clientKey, siteOf } from '../auth/client-address.ts';
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { endMcpAuthorisation, findLiveAuthorisation } from '../store/mcp-authorisations.ts';
import {
  addOAuthRecord,
  capOAuthRecords,
  capUnusedClients,
  findOAuthRecord,
  putOAuthRecord,
  removeOAuthRecord,
  removeOAuthRecordsOf,
  useOAuthRecord,
} from '../store/oauth-records.ts';
import { readStored, StoredObject } from '../store/stored-json.ts';
import { storable } from '../wire/action.ts';
import { browserCookieHash } from './browser-cookie.ts';
import { OAUTH_PATHS } from './metadata.ts';

/** How long clients without an authorisation are kept, and how many. */
const UNUSED_CLIENT_MS = 24 * 3600 * 1000;
const MAX_UNUSED_CLIENTS = 1_000;
/** Limit of pending consent pages, abandoned ones included. */
const MAX_INTERACTIONS = 5_000;

/**
 * Grace period in which a rotated refresh token is accepted again, because two processes of one client may refresh
 * concurrently, or a response may get lost. After that, reuse is treated as theft, and the whole authorisation is revoked.
 */
export const REFRESH_LEEWAY_MS = 10_000;

type Store = Pick<Broker, 'store' | 'clock' | 'baseUrl' | 'log'>;

/** Returns the adapter for a model of the library, by its name. */
export function adapterFor(broker: Store): (kind: string) => Adapter {
  return (kind) => {
    if (kind === 'Session') return NO_SESSIONS;
    if (kind === 'ReplayDetection') return { ...recordAdapter(broker, kind), upsert: usedOnce(broker, kind) };
    if (kind === 'Grant') return { ...recordAdapter(broker, kind), ...authorisationEnds(broker) };
    return recordAdapter(broker, kind);
  };
}

/** Consent requires a console session. The library's own sessions are not stored: they would outlast it. */
const NO_SESSIONS: Adapter = {
  upsert: async () => {},
  find: async () => undefined,
  findByUid: async () => undefined,
  findByUserCode: async () => undefined,
  consume: async () => {},
  destroy: async () => {},
  revokeByGrantId: async () => {},
};

/** Returns the source network of the request that the library is handling. */
function sourceOfRequest(): string {
  // Express sets `ip`.
  const request: (IncomingMessage & { ip?: string }) | undefined = Provider.ctx?.req;
  return siteOf(clientKey(request?.ip ?? request?.socket.remoteAddress ?? ''));
}

/** Returns the source to store with a new record. */
function sourceOf({ baseUrl }: Store, kind: string): string | null {
  if (kind === 'Interaction') return browserCookieHash(Provider.ctx?.req, baseUrl) ?? null;
  return kind === 'Client' ? sourceOfRequest() : null;
}

function recordAdapter(broker: Store, kind: string): Adapter {
  const { db } = broker.store;
  // Ids of clients and grants are public. All other ids are secrets (codes, tokens), so only their hashes are stored.
  const stored = (id: string) => (kind === 'Client' || kind === 'Grant' ? id : sha256Hex(id));
  return {
    ...NO_SESSIONS,
    upsert: async (id, payload, expiresIn) => {
      const now = broker.clock();
      const { jti: _id, returnTo: _address, grantId, ...rest } = payload;
      await putOAuthRecord(db, {
        kind,
        id: stored(id),
        authorisation_id: typeof grantId === 'string' ? grantId : null,
        payload: JSON.stringify(rest),
        created_at: now,
        expires_at: now + (expiresIn === undefined ? UNUSED_CLIENT_MS : expiresIn * 1000),
        source: sourceOf(broker, kind),
      });
      if (kind === 'Client') await capUnusedClients(db, MAX_UNUSED_CLIENTS);
      if (kind === 'Interaction') await capOAuthRecords(db, kind, MAX_INTERACTIONS);
    },
    find: async (id) => {
      // A client's id is untrusted input.
      if (!storable(id)) return undefined;
      const now = broker.clock();
      const found = await findOAuthRecord(db, kind, stored(id), now);
      if (!found) return undefined;
      // Checks the library's own routes. The broker's pages use `beganHere`.
      if (
        kind === 'Interaction' &&
        Provider.ctx &&
        found.source !== browserCookieHash(Provider.ctx.req, broker.baseUrl)
      )
        return undefined;
      const { used_at } = found;
      const spared = kind === 'RefreshToken' && used_at !== null && used_at > now - REFRESH_LEEWAY_MS;
      return {
        ...readStored(StoredObject, found.payload, 'record of OAuth'),
        ...(kind !== 'Client' && { jti: id }),
        ...(kind === 'Interaction' && { returnTo: `${broker.baseUrl}${OAUTH_PATHS.authorization}/${id}` }),
        ...(found.authorisation_id !== null && { grantId: found.authorisation_id }),
        ...(used_at !== null && !spared && { consumed: Math.floor(used_at / 1000) }),
      };
    },
    // The library reads first and consumes later: a concurrent request may have won in between.
    consume: async (id) => {
      const leewayMs = kind === 'RefreshToken' ? REFRESH_LEEWAY_MS : 0;
      if (!(await useOAuthRecord(db, { kind, id: stored(id) }, { now: broker.clock(), leewayMs })))
        throw new errors.InvalidGrant('already used');
    },
    destroy: (id) => removeOAuthRecord(db, kind, stored(id)),
    revokeByGrantId: (authorisationId) => removeOAuthRecordsOf(db, kind, authorisationId),
  };
}

/** Replay protection for client assertions: the library checks first and stores later, so this insert has to be atomic. */
function usedOnce({ store, clock }: Store, kind: string): Adapter['upsert'] {
  return async (id, _payload, expiresIn = 0) => {
    const now = clock();
    const record = { kind, id: sha256Hex(id), authorisation_id: null, payload: '{}', created_at: now };
    if (!(await addOAuthRecord(store.db, { ...record, expires_at: now + expiresIn * 1000 })))
      throw new errors.InvalidClientAuth('client assertion tokens must only be used once');
  };
}

/**
 * Maps the library's grant to the broker's authorisation: the grant exists while the authorisation is active, and revoking it revokes the authorisation.
 */
function authorisationEnds(broker: Store): Partial<Adapter> {
  const { db } = broker.store;
  const records = recordAdapter(broker, 'Grant');
  return {
    find: async (id) => {
      const live = await findLiveAuthorisation(db, id, broker.clock());
      return live && (await records.find(id));
    },
    destroy: async (id) => {
      if (await endMcpAuthorisation(db, id, 'reuse', broker.clock()))
        broker.log.warn(
          { security: true, authorisation: id },
          'a replaced refresh token of an MCP client was used again and may have been stolen: its access was ended',
        );
      await records.destroy(id);
    },
  };
}
