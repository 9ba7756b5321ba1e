/** Sends an allowed git request to the code host and returns the answer (specification, Governed git). */
import type { NotPassedOn } from '../audit/outcome.ts';
import type { Broker } from '../broker.ts';
import type { Secret } from '../crypto/secret.ts';
import { isHeaderValue, type StreamRequest } from '../egress/outbound-request.ts';
import type { StreamedAnswer } from '../egress/streamed-exchange.ts';
import type { ConnectionFacts } from '../facts/connection-facts.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { present } from '../runtime/present.ts';
import { essenceOf } from '../wire/media-type.ts';
import type { Call } from './call.ts';
import type { Credential } from './credentials.ts';
import { GONE } from './forward.ts';
import { openStream, passOn, timeoutsOf } from './forward-stream.ts';
import type { Forwarded } from './forwarded.ts';
import type { GitRequest, ReadsReport } from './git-request.ts';
import type { StreamConsumer, StreamedPart } from './streamed.ts';

/** GitHub's user name for token authentication. Other hosts accept any name beside a token, or the manifest names theirs. */
const DEFAULT_USER = 'x-access-token';

/** Sends the request once, and streams the answer to the taker if it is a git answer. */
export async function forwardGit(
  { outbound }: Pick<Broker, 'outbound'>,
  call: Call & { git: GitRequest },
  { manifest, connection }: { manifest: Manifest; connection: ConnectionFacts },
  credential: Credential,
): Promise<Forwarded> {
  const { git } = call;
  if (call.taker === undefined) throw new Error('the entry point for git takes streamed answers only');
  const authorization = basicCredential(manifest, credential.secret);
  if (!isHeaderValue(authorization))
    return { kind: 'refused_locally', error: 'credential_malformed', detail: 'the stored credential is empty' };
  const body = git.body?.open();
  if (git.body && body === undefined) return GONE;
  const request: StreamRequest = {
    url: addressOf(manifest, git, call),
    method: call.action.method,
    headers: { ...git.headers, authorization },
    connectionKey: connection.id,
    ...timeoutsOf(connection, manifest),
    // A pack is compressed: any encoded form of the credential found in it would be a coincidence.
    search: { credential: credential.streamed, forms: git.step === 'fetched' ? 'raw' : 'all' },
    ...(git.body && body && { body, bodyBytes: git.body.bytes }),
  };
  const { report } = git;
  const taker = report ? withReport(report, call.taker) : call.taker;
  const streaming = { outbound, call, taker, credential };
  const answer = await openStream(streaming, request);
  if (answer.kind !== 'stream') return answer;
  const cause = whyNotPassedOn(git, answer);
  if (cause === undefined) {
    const { streamed, ...passed } = await passOn(streaming, answer);
    return { ...passed, streamed: { ...streamed, report: report?.read() } };
  }
  await answer.body.return();
  return { kind: 'not_passed_on', status: answer.status, cause, sent: await answer.uploaded() };
}

/** Wraps a taker so that the report of a push is parsed from the answer on the way. */
const withReport =
  (report: ReadsReport, taker: StreamConsumer): StreamConsumer =>
  (part) =>
    taker({ ...part, body: readingReport(report, part.body) });

async function* readingReport(report: ReadsReport, body: StreamedPart['body']): StreamedPart['body'] {
  for await (const piece of body) {
    report.push(piece);
    yield piece;
  }
}

/**
 * The repository's URL at the code host, always with `.git`. Owner and name were validated by the git route, so they cannot alter the path.
 */
function addressOf({ git_base_url }: Manifest, git: GitRequest, { path, query }: Call): URL {
  const base = present(git_base_url, 'git_base_url');
  const { owner, name } = git.repository;
  const tail = path.split('/').slice(4).join('/');
  return new URL(`${base.replace(/\/+$/, '')}/${owner}/${name}.git/${tail}${query === '' ? '' : `?${query}`}`);
}

/** Builds the Basic credential (RFC 7617). A credential of the form `user:password` is sent as it is. */
function basicCredential({ auth, git_user: user = DEFAULT_USER }: Manifest, secret: Secret): string {
  const text = secret.reveal();
  if (text === '' || !text.isWellFormed()) return '\n';
  const pair = auth.type === 'basic' && text.includes(':') ? text : `${user}:${text}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

function whyNotPassedOn({ answerType }: GitRequest, { status, headers }: StreamedAnswer): NotPassedOn | undefined {
  if (status === 401 || status === 403) return 'auth_refused';
  if (status === 404) return 'not_found';
  if (status >= 300 && status < 400) return 'redirected';
  const type = essenceOf(String(headers['content-type'] ?? ''));
  return status === 200 && type === answerType ? undefined : 'unexpected';
}
