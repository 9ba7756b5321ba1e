/**
 * Revokes the tokens of an App's installation (GitHub REST API, "Revoke an installation access token") after they were deleted from the
 * store: each would be valid for up to an hour.
 */
import type { Broker } from '../broker.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { inTurns } from '../runtime/in-turns.ts';
import type { ConnectionTable, UpstreamTokenTable } from '../store/tables/connections.ts';
import { sharedHeaders } from './app-request.ts';
import { openToken } from './sealed-token.ts';

/** An owner waits for this; tokens that are not revoked in time expire by themselves. */
const TIMEOUT = { concurrency: 8, timeoutMs: 5_000 };
const TIMEOUT_MS = 5_000;
const MAX_BYTES = 64 * 1024;

type Base = Pick<Broker, 'outbound' | 'vault' | 'log' | 'clock'>;

/** Never fails: tokens that could not be revoked are logged. */
export async function revokeAppTokens(
  broker: Base,
  { connection, manifest }: { connection: Pick<ConnectionTable, 'id'>; manifest: Manifest },
  rows: readonly UpstreamTokenTable[],
): Promise<void> {
  // Tokens of other kinds expire within an hour.
  if (manifest.auth.type !== 'app') return;
  let failed = 0;
  const left = await inTurns(rows, TIMEOUT, async (row) => {
    const token = openToken(broker, row);
    if (token === undefined || (token.expiresAt ?? 0) <= broker.clock()) return;
    const answer = await broker.outbound.send({
      url: new URL(`${manifest.base_url.replace(/\/$/, '')}/installation/token`),
      method: 'DELETE',
      headers: { ...sharedHeaders(manifest.headers ?? {}), authorization: `Bearer ${token.token.reveal()}` },
      connectionKey: `${connection.id}/app`,
      totalTimeoutMs: TIMEOUT_MS,
      idleTimeoutMs: TIMEOUT_MS,
      maxResponseBytes: MAX_BYTES,
    });
    // 401: it had already expired.
    if (answer.kind === 'unreachable' || (answer.status >= 300 && answer.status !== 401)) failed++;
  });
  if (failed + left.length > 0)
    broker.log.warn(
      { connection: connection.id, failed, left: left.length },
      "some tokens of an App's installation were forgotten here without being revoked: they end within an hour",
    );
}
