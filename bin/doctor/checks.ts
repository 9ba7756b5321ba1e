/** Checks what an agent needs to call the broker, in order; each failed check includes advice. */
import { formatDuration } from '../../broker/console/static/shell/duration.js';
import { addressWarning } from '../../broker/reach.ts';
import { agentSigner } from '../../mcp/client/signer.ts';
import type { Profile } from '../../mcp/profile.ts';
import type { Answer, Check } from './check.ts';
import { examineKey, examineKeyItself } from './key.ts';

const TIMEOUT_MS = 10_000;
/** A clock that is further ahead makes tokens that are refused (docs/agents.md, The agent token). */
const MAX_AHEAD_MS = 30_000;
/** A clock that is further behind makes tokens that have already expired: those with the default lifetime of 60 seconds. */
const MAX_BEHIND_MS = MAX_AHEAD_MS + 60_000;
const SKEW_WORTH_TELLING_MS = 5_000;

/** Sends a request as the agent would. Throws what `fetch` throws. */
async function ask(url: string, token?: string): Promise<Answer> {
  const before = Date.now();
  const response = await fetch(url, {
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }) },
  });
  const after = Date.now();
  const date = Date.parse(response.headers.get('date') ?? '');
  // The header has whole seconds, so on average the time is half a second later.
  const skewMs = Number.isNaN(date) ? undefined : (before + after) / 2 - (date + 500);
  const body = await response.json().catch(() => ({}));
  return { status: response.status, headers: response.headers, body: body as Answer['body'], skewMs };
}

/** Runs all checks that follow reading the profile, in order. */
export async function examine(profile: Profile): Promise<Check[]> {
  const found: Check[] = [];
  const skip = (...checks: Check['check'][]) =>
    found.push(...checks.map((check): Check => ({ check, result: 'skipped', detail: 'not checked: see above' })));
  const { check: address, skewMs } = await examineAddress(profile.url);
  found.push(address);
  if (address.result === 'failed') {
    skip('clock');
    found.push(examineKeyItself(profile) ?? skipped('key', 'an RSA key; could not check whether the broker knows it'));
    skip('status', 'grants');
    return found;
  }
  const links = await examineLinks(profile.url);
  if (links) found.push(links);
  found.push(examineClock(skewMs));
  const bad = examineKeyItself(profile);
  const me = bad ? undefined : await ask(`${profile.url}/v1/agents/me`, agentSigner(profile)()).catch(() => undefined);
  const key = bad ?? examineKey(profile, me);
  found.push(key);
  if (key.result === 'failed' || !me) {
    skip('status', 'grants');
    return found;
  }
  const status = examineStatus(me.body);
  found.push(status);
  if (status.result === 'failed') skip('grants');
  else found.push(await examineGrants(profile));
  return found;
}

const skipped = (check: Check['check'], detail: string): Check => ({ check, result: 'skipped', detail });

async function examineAddress(url: string): Promise<{ check: Check; skewMs?: number | undefined }> {
  const failed = (detail: string, advice: string) => ({
    check: { check: 'address', result: 'failed', detail, advice } satisfies Check,
  });
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return failed(
      `${url} is no address`,
      'Write the address of the broker as https://broker.example into the profile.',
    );
  let answer: Answer;
  try {
    answer = await ask(`${url}/health`);
  } catch (error) {
    const reason = (error as { cause?: { code?: string } }).cause?.code ?? (error as Error).name;
    return failed(
      `nothing answers at ${url} (${reason})`,
      /CERT|TLS|SSL/.test(reason)
        ? 'The certificate is not trusted here: name its authority with NODE_EXTRA_CA_CERTS, or correct the address.'
        : `Start the broker, correct the address in the profile, or check the network and the proxy in between.${unusedProxy()}`,
    );
  }
  if (answer.status === 503)
    return failed(
      `the broker at ${url} accepts no calls now`,
      reasonsOf(answer) ?? 'Its operator has to check its log.',
    );
  if (answer.body.error === 'misdirected_request')
    return failed(`the broker at ${url} does not accept that host name`, String(answer.body.detail));
  const location = answer.headers.get('location');
  if (location !== null)
    return failed(
      `${url} redirects to ${location}`,
      'Redirects are not followed, because requests carry tokens: write the final address into the profile.',
    );
  if (answer.status !== 200 || answer.body.status !== 'ok')
    return failed(
      `something else answers at ${url} (status ${answer.status})`,
      'Correct the address in the profile: the address that the broker prints at its start, without a path.',
    );
  const { skewMs } = answer;
  const { protocol, hostname } = new URL(url);
  if (protocol === 'http:' && !['localhost', '127.0.0.1', '[::1]'].includes(hostname)) {
    const detail = `${url} answers, without TLS`;
    const advice = 'Anybody on the network can read tokens and responses. Put TLS in front and use an https address.';
    return { check: { check: 'address', result: 'warning', detail, advice }, skewMs };
  }
  return { check: { check: 'address', result: 'ok', detail: `${url} answers` }, skewMs };
}

/** Checks the broker's public address, which links for people use; undefined when there is no reason to expect that they cannot be opened. */
async function examineLinks(url: string): Promise<Check | undefined> {
  const said = (await ask(`${url}/agent-manifest.json`).catch(() => undefined))?.body.base_url;
  const warning = typeof said === 'string' && URL.canParse(said) ? addressWarning(said) : undefined;
  if (!warning) return undefined;
  const detail = `owners who decide on a held call get a link to ${said}`;
  return { check: 'links', result: 'warning', detail, advice: warning.text };
}

/** The broker gives reasons only to requests from its own machine. */
function reasonsOf({ body }: Answer): string | undefined {
  return Array.isArray(body.reasons) ? `${body.reasons.join('; ')}.` : undefined;
}

function examineClock(skewMs: number | undefined): Check {
  if (skewMs === undefined) return { check: 'clock', result: 'skipped', detail: 'the response has no date' };
  const apart = Math.abs(skewMs);
  const seconds = Math.round(apart / 1000);
  if (apart < SKEW_WORTH_TELLING_MS) return { check: 'clock', result: 'ok', detail: 'the same time as the broker’s' };
  const detail = `${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the broker’s`;
  const advice = 'Let the machine set its clock from the network (NTP).';
  const most = skewMs > 0 ? MAX_AHEAD_MS : MAX_BEHIND_MS;
  return apart < most
    ? { check: 'clock', result: 'warning', detail, advice: `${advice} From ${most / 1000} s on, tokens are refused.` }
    : { check: 'clock', result: 'failed', detail, advice: `${advice} Tokens are refused beyond ${most / 1000} s.` };
}

function examineStatus(me: Answer['body']): Check {
  const halt = me.halt as { state: string; cause: string; detail: string | null; instructions: string } | undefined;
  const detail = `${me.name} is ${me.agent_status}`;
  if (halt) {
    const why = halt.detail === null ? halt.cause : `${halt.cause}: ${halt.detail}`;
    return {
      check: 'status',
      result: 'failed',
      detail: `${detail}; ${halt.state} (${why})`,
      advice: halt.instructions,
    };
  }
  if (me.agent_status !== 'active')
    return { check: 'status', result: 'failed', detail, advice: 'It may call once its key is collected, or bound.' };
  return { check: 'status', result: 'ok', detail };
}

type Platform = {
  platformId: string;
  scopes: string[];
  requireApproval: boolean;
  approvalScopes?: string[];
  unenforcedScopes?: string[];
  expiresInSeconds?: number;
  connections?: { label: string | null; status: string }[];
};

async function examineGrants(profile: Profile): Promise<Check> {
  const answer = await ask(`${profile.url}/v1/agent/permissions`, agentSigner(profile)()).catch(() => undefined);
  const data = answer?.body.data as { platforms?: Platform[] } | undefined;
  if (answer?.status !== 200 || !data?.platforms) {
    const detail = `the broker does not tell what the agent may do (${answer?.status ?? 'no answer'})`;
    return {
      check: 'grants',
      result: 'failed',
      detail,
      advice: String(answer?.body.detail ?? 'Try again in a minute.'),
    };
  }
  const { platforms } = data;
  if (platforms.length === 0)
    return {
      check: 'grants',
      result: 'failed',
      detail: 'the agent may do nothing yet',
      advice: 'Ask an owner for a grant, under a policy that allows it; or ask with POST /v1/access-request.',
    };
  const detail = platforms.map(describePlatform).join('; ');
  const unconnected = platforms.filter(isUnconnected).map(({ platformId }) => platformId);
  if (unconnected.length > 0)
    return {
      check: 'grants',
      result: unconnected.length === platforms.length ? 'failed' : 'warning',
      detail,
      advice: `Calls have no connection that they could use on ${unconnected.join(', ')}: ask an owner to connect it, or for a grant that names a connection.`,
    };
  const refused = platforms.flatMap(({ platformId, connections = [] }) =>
    connections.filter(({ status }) => status === 'reauth_needed').map(({ label }) => `${platformId} (${label})`),
  );
  if (refused.length > 0)
    return {
      check: 'grants',
      result: 'warning',
      detail,
      advice: `The credential was refused at the last call on ${refused.join(', ')}: ask an owner to connect it again, or to replace its secret. The answer to such a call says why.`,
    };
  const useless = platforms.flatMap(({ unenforcedScopes = [] }) => unenforcedScopes);
  if (useless.length > 0)
    return {
      check: 'grants',
      result: 'warning',
      detail,
      advice: `These scopes allow nothing, because no rule of the platform covers them: ${useless.join(', ')}.`,
    };
  return { check: 'grants', result: 'ok', detail };
}

/** Calls are a 412 then (docs/agents.md, What the agent may do now). */
const isUnconnected = ({ connections }: Platform): boolean =>
  connections?.every(({ status }) => status === 'not_connected') ?? false;

function describePlatform({
  platformId,
  scopes,
  requireApproval,
  approvalScopes = [],
  expiresInSeconds,
}: Platform): string {
  const held = requireApproval ? scopes.length : approvalScopes.length;
  const until = expiresInSeconds === undefined ? '' : `, for ${formatDuration(expiresInSeconds * 1000)} more`;
  return `${platformId}: ${scopes.length} ${scopes.length === 1 ? 'scope' : 'scopes'}${held > 0 ? `, ${held} of them wait for a person` : ''}${until}`;
}

const NAMES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];

/** Returns a note, to end an advice, that the environment names a proxy which Node does not use; '' when that is not so. */
export function unusedProxy(environment = process.env): string {
  const name = environment.NODE_USE_ENV_PROXY === '1' ? undefined : NAMES.find((one) => environment[one]);
  return name === undefined ? '' : ` ${name} is set, and used only with NODE_USE_ENV_PROXY=1.`;
}
