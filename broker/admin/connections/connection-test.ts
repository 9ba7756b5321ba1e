/** Tests a connection with one harmless GET of the platform's base URL; for an MCP server by listing its tools. */

import { type Changing, type ChangingOwner, recordChange } from '../../audit/record-change.ts';
import type { Broker } from '../../broker.ts';
import { restPlatform } from '../../calls/forward.ts';
import type { TokenServices } from '../../calls/token-renewal.ts';
import type { Secret } from '../../crypto/secret.ts';
import type { Outbound } from '../../egress/dispatcher.ts';
import { buildRequest } from '../../egress/rest.ts';
import { accountIn } from '../../oauth-client/account.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import type { Instant } from '../../policy/facts.ts';
import { storeTest } from '../../store/connection-outcomes.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import { describeInstallation } from './app-test.ts';
import { loadConnection } from './find-connection.ts';
import { type FreshCredential, freshCredential, remedyOf } from './fresh-credential.ts';
import { testMcpServer } from './mcp-test.ts';

/** `detail`: a text of ours. `sent`: whether a request may have reached the platform. */
export type ConnectionTest = {
  ok: boolean;
  upstreamStatus: number | null;
  detail: string;
  sent: boolean;
  /** What the platform reports about the credential, if it does: the account, its expiry, and its scopes. */
  account: string | null;
  expiresAt: Instant | null;
  grantedScopes: string[] | null;
  /** Scopes for which the credential does not suffice, with the platform's own scopes of which one is needed. */
  lacking: { scope: string; needs: string[] }[];
};

/** Timeout, shorter than that of a call, because an owner is waiting. */
const TIMEOUT_MS = 15_000;
const MAX_BYTES = 1024 * 1024;

/**
 * Sends the request with the credential through the guarded egress; recorded in the audit, because it uses the credential. The result is stored with
 * the connection. An expired token is refreshed; otherwise nothing changes. Throws ChangeRefused; AuditUnavailable.
 */
export async function tryConnection(
  services: Changing & TokenServices,
  by: ChangingOwner,
  id: string,
): Promise<ConnectionTest> {
  const { connection, manifest } = await loadConnection(services.broker.store.db, by.owner.organisation_id, id);
  const tested = await testConnection(services, connection, manifest);
  const change = { reason: 'connection_tested', platform: connection.platform_id, connection: id };
  const { broker } = services;
  const found = { ...tested, at: broker.clock(), revision: connection.revision };
  if (!tested.sent) await storeTest(broker.store.db, connection, found);
  else
    await recordChange(services, by, change, async (tx, note) => {
      await storeTest(tx, connection, found);
      note({ label: connection.label, ok: tested.ok, upstream_status: tested.upstreamStatus });
    });
  return tested;
}

async function testConnection(
  services: TokenServices,
  connection: ConnectionTable,
  manifest: Manifest,
): Promise<ConnectionTest> {
  const fresh = await freshCredential(services, connection, manifest);
  if (!fresh.ok) return unsent(fresh.detail);
  const tested = await testWith(services, connection, manifest, fresh);
  if (tested.upstreamStatus !== 401 || fresh.another === undefined) return tested;
  // As for a call: a token that ended before its time is replaced once.
  const another = await fresh.another();
  return another.ok ? await testWith(services, connection, manifest, another) : { ...tested, detail: another.detail };
}

const unsent = (detail: string): ConnectionTest => ({
  ok: false,
  upstreamStatus: null,
  detail,
  sent: false,
  ...SILENT,
});

async function testWith(
  services: TokenServices,
  connection: ConnectionTable,
  manifest: Manifest,
  { credential, installation }: Extract<FreshCredential, { ok: true }>,
): Promise<ConnectionTest> {
  // A server that requires attestation does not answer a test with a list.
  if (manifest.kind === 'mcp' && (manifest.attestation ?? 'off') === 'off') {
    const how = { connectionKey: connection.id, credential: credential.secret, timeoutMs: TIMEOUT_MS };
    return { ...SILENT, ...(await testMcpServer(services.broker, manifest, how)) };
  }
  const account = installation ? undefined : accountRequest(manifest);
  const address = addressOf(manifest, account?.url ?? manifest.base_url);
  const built = await buildRequest(...address, credential.secret, services.broker.clock());
  if (!built.ok)
    return unsent(
      built.error === 'credential_malformed'
        ? 'The stored secret cannot be sent: replace it.'
        : 'No request can be sent to the base address of the platform.',
    );
  const asked = await ask(services.broker, { ...built.request, connectionKey: connection.id });
  if (asked.kind === 'unreachable')
    return { ok: false, upstreamStatus: null, detail: asked.detail, sent: asked.sent, ...SILENT };
  const said = saidOf(asked, account?.pointer, credential.secret, manifest);
  const { ok, detail } = awsJudges(asked, manifest) ?? judge(asked, manifest, account !== undefined);
  const more = installation
    ? await describeInstallation(services.broker, installation, connection, manifest)
    : excessOf(said.grantedScopes ?? [], manifest);
  return { ok, upstreamStatus: asked.status, sent: true, detail: more === '' ? detail : `${detail} ${more}`, ...said };
}

const SILENT = { account: null, expiresAt: null, grantedScopes: null, lacking: [] };

/** Returns the URL at which the platform names the account, if it is on the host that gets the credential with every call. */
function accountRequest({ oauth, auth, base_url, kind }: Manifest): { url: string; pointer: string } | undefined {
  const account = (auth.type === 'oauth2' ? auth.account : undefined) ?? oauth?.account;
  if (!account || kind !== 'rest' || !['bearer', 'oauth2'].includes(auth.type)) return undefined;
  return URL.parse(account.url)?.origin === URL.parse(base_url)?.origin ? account : undefined;
}

/** GitHub and Slack report a token's scopes in each answer, and GitHub its expiry ("Scopes for OAuth apps"). */
function saidOf(
  { headers, body }: Answered,
  pointer: string | undefined,
  credential: Secret,
  { needs = {} }: Manifest,
): Pick<ConnectionTest, 'account' | 'expiresAt' | 'grantedScopes' | 'lacking'> {
  const scopes = headers['x-oauth-scopes'];
  const grantedScopes =
    scopes === undefined
      ? null
      : [scopes].flat().flatMap((text) => text.split(/[ ,]+/).filter((one) => /^[\w:.-]{1,100}$/.test(one)));
  const end = Date.parse([headers['github-authentication-token-expiration'] ?? ''].flat()[0] ?? '');
  const lacking = Object.entries(needs).flatMap(([scope, needs]) =>
    grantedScopes === null || needs.some((one) => grantedScopes.includes(one)) ? [] : [{ scope, needs: [...needs] }],
  );
  const account = pointer === undefined ? null : accountIn(body.toString('utf8'), pointer, credential);
  return { account, expiresAt: Number.isNaN(end) ? null : end, grantedScopes, lacking };
}

/** GitHub's scope for changing workflows, which run with a repository's secrets. */
const RISKY = 'workflow';

function excessOf(grantedScopes: readonly string[], { needs = {} }: Manifest): string {
  const isKnown = Object.values(needs).some((scopes) => scopes.includes(RISKY));
  if (!isKnown || !grantedScopes.includes(RISKY)) return '';
  return `Warning: the token has the scope "${RISKY}", so any agent that may push can change workflows, which run with the repository's secrets. Give the connection a token without it, or an App.`;
}

/** Builds a request for an address of the manifest as it is. */
function addressOf(
  manifest: Manifest,
  url: string,
): [Parameters<typeof buildRequest>[0], Parameters<typeof buildRequest>[1]] {
  const call = { method: 'GET', endpoint: { path: '/', query: '' }, headers: {} } as const;
  return [{ ...restPlatform({ ...manifest, base_url: url }), wholeAddress: true }, call];
}

type Sent = Parameters<Outbound['send']>[0];
type Answered = Extract<Awaited<ReturnType<Outbound['send']>>, { kind: 'answer' }>;

const ask = (broker: Pick<Broker, 'outbound'>, request: Sent) =>
  broker.outbound.send({ ...request, totalTimeoutMs: TIMEOUT_MS, maxResponseBytes: MAX_BYTES });

/** `ofAccount`: whether the request was for the account's address, which never answers without a valid credential. */
function judge(
  { status, body }: Answered,
  manifest: Manifest,
  ofAccount: boolean,
): Pick<ConnectionTest, 'ok' | 'detail'> {
  const at = `The platform answered ${status} at ${ofAccount ? 'the address that names the account' : 'its base address'}`;
  if (ofAccount && status < 300)
    return refusesInBody(body)
      ? { ok: false, detail: `${at}, and its response says that it refused the credential. ${remedyOf(manifest)}` }
      : { ok: true, detail: `${at}: it accepts the credential.` };
  if (status === 401) return { ok: false, detail: `${at}: it refused the credential. ${remedyOf(manifest)}` };
  if (status === 403)
    return {
      ok: false,
      detail: `${at}: it refused the credential, or refuses everybody at this address. Only a real call can tell which.`,
    };
  if (status >= 500) return { ok: false, detail: `${at}: it was reached, but failed.` };
  if (status < 300) return { ok: true, detail: `${at}: it was reached, and did not refuse the credential.` };
  if (status < 400) return { ok: false, detail: `${at}: a redirect, which calls do not follow. Check base_url.` };
  return {
    ok: true,
    detail: `${at}: it was reached, and did not refuse the credential; this test cannot find out more.`,
  };
}

/** AWS error codes that mean that the signature is not accepted, and what to do (S3, "Error responses"; "Common errors"). */
const AWS_CODES: Readonly<Record<string, string>> = {
  InvalidAccessKeyId: 'it does not know the access key. Replace the secret.',
  UnrecognizedClientException: 'it does not know the access key, or the session token. Replace the secret.',
  InvalidClientTokenId: 'it does not know the access key. Replace the secret.',
  SignatureDoesNotMatch:
    'it rejected the signature. Replace the secret; if it is right, check region and service in auth.',
  InvalidSignatureException:
    'it rejected the signature. Replace the secret; if it is right, check region and service in auth.',
  AuthorizationHeaderMalformed: 'it expects another region or service. Check region and service in auth.',
  ExpiredToken: 'the session token has expired. Replace the secret.',
  ExpiredTokenException: 'the session token has expired. Replace the secret.',
  InvalidToken: 'it does not know the session token. Replace the secret.',
  RequestTimeTooSkewed: "the broker's clock is wrong. Set it.",
  AccessDenied: '',
  AccessDeniedException: '',
};

/** Returns why AWS refused; undefined when it did not, or gave no reason. Also recognises a valid key when this address itself is denied to it. */
function awsJudges({ status, body }: Answered, { auth }: Manifest): Pick<ConnectionTest, 'ok' | 'detail'> | undefined {
  if (auth.type !== 'aws_sigv4' || status < 400 || status >= 500) return undefined;
  const text = body.toString('utf8', 0, 4096);
  const code =
    /<Code>(\w{1,60})<\/Code>/.exec(text)?.[1] ?? /"__type"\s*:\s*"(?:[\w.]{1,100}#)?(\w{1,60})"/.exec(text)?.[1];
  const said = code !== undefined && Object.hasOwn(AWS_CODES, code) ? AWS_CODES[code] : undefined;
  if (said === undefined) return undefined;
  const at = `The platform answered ${status} (${code}) at its base address`;
  return said === ''
    ? {
        ok: true,
        detail: `${at}: it accepts the signature, but does not allow the key to use this address. Only a real call shows what the key may do.`,
      }
    : { ok: false, detail: `${at}: ${said}` };
}

/** Slack refuses with 200 and `"ok": false` (docs.slack.dev, "Evaluating responses"). */
function refusesInBody(body: Buffer): boolean {
  try {
    const said: unknown = JSON.parse(body.toString('utf8'));
    return typeof said === 'object' && said !== null && 'ok' in said && said.ok === false;
  } catch {
    return false;
  }
}
