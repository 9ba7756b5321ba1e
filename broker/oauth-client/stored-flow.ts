/** State of a flow, stored until the callback. */
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { readStored, Texts } from '../store/stored-json.ts';
import type { OAuthFlowTable } from '../store/tables/connections.ts';

/** `server`, because codes and tokens must go to no other server; `redirectUri`, because a callback at another path belongs to another server. */
export type Kept = {
  verifier: string;
  nonce: string | null;
  server: string;
  clientId: string;
  redirectUri: string;
  /** The requested scopes, which are the granted ones when the response has no `scope` (RFC 6749 section 5.1). */
  scopes: readonly string[];
};

export const StoredFlow: z.ZodType<Kept> = z.object({
  verifier: z.string(),
  nonce: z.string().nullable(),
  server: z.string(),
  clientId: z.string(),
  redirectUri: z.string(),
  scopes: Texts,
});

/** Opens the state of an owner's flow. @throws SealError when it was altered */
export const openFlow = (
  { vault }: Pick<Broker, 'vault'>,
  { organisation_id: organisationId, id: rowId, flow }: OAuthFlowTable,
): Kept =>
  readStored(
    StoredFlow,
    vault.open({ table: 'oauth_flows', organisationId, rowId }, flow).toString('utf8'),
    'state of an authorization',
  );
