/** Governed git (smart HTTP): clone, fetch and push through the broker (specification, Governed git). */
import { z } from 'zod';
import { GIT_PLATFORM, mediaTypeOf } from '../../git/git-call.ts';
import { serveGit } from '../git/entry-point.ts';
import { formatUnreadRefusal } from '../git/refusal.ts';
import { CALL_HEADERS } from '../openapi/documented-action.ts';
import { type AnswerDeclaration, type Context, route } from '../route.ts';

const LINE = 'text/plain';
const line = (description: string): Exclude<AnswerDeclaration, string> => ({
  description,
  type: LINE,
  schema: z.string(),
});

const REFUSALS = {
  403: {
    ...line('Denied: the line has the reason, such as `repo_not_allowed` or `approval_required_unsupported_for_git`.'),
    headers: ['Retry-After'],
  },
  404: line('The code host has no such repository, or does not show it.'),
  412: line('No code host is connected, or more consent is needed.'),
} satisfies Record<number, AnswerDeclaration>;

const pack = (description: string, type: string) => ({
  description,
  type,
  schema: z.string().meta({ format: 'binary' }),
});

const COMMON = {
  auth: 'git',
  facts: GIT_PLATFORM,
  dialect: 'line',
  formatRefusal: formatUnreadRefusal,
  limit: { name: 'git', perMinute: 600, per: 'family' },
  headers: {
    ...CALL_HEADERS,
    'Git-Protocol': { description: 'The version of the protocol, passed on.', example: 'version=2' },
  },
  params: {
    owner: z.string().describe('owner of the repository'),
    repo: z.string().describe('its name, with `.git` at the end or without'),
  },
  errors: [
    'invalid_request',
    'forbidden',
    'too_many_calls',
    'upstream_auth_failed',
    'upstream_unreachable',
    'upstream_response_blocked',
    'audit_unavailable',
    'store_restored',
    'credential_unreadable',
  ],
} as const;

/** After the call was decided, the answer is streamed. */
const handle = async (context: Context<'git'>) => ({
  status: 200,
  handOver: (response: Parameters<typeof serveGit>[1]) => void serveGit(context, response),
});

const BODY =
  'The body is that of git, `gzip` or plain, up to GIT_MAX_REQUEST_BYTES (64 MiB unless the operator says otherwise).';

export const gitRoutes = [
  route({
    ...COMMON,
    method: 'GET',
    path: '/git/{owner}/{repo}/info/refs',
    capability: 'git.refs',
    summary: 'Advertise the refs of a repository.',
    description: '`service` says for what: `git-upload-pack` to fetch, `git-receive-pack` to push.',
    query: z.object({ service: z.enum(['git-upload-pack', 'git-receive-pack']) }),
    answers: {
      200: {
        ...pack('The advertisement.', 'application/x-git-upload-pack-advertisement'),
        also: { 'application/x-git-receive-pack-advertisement': z.string().meta({ format: 'binary' }) },
      },
      ...REFUSALS,
    },
    handle: handle as never,
  }),
  route({
    ...COMMON,
    method: 'POST',
    path: '/git/{owner}/{repo}/git-upload-pack',
    capability: 'git.fetch',
    summary: 'Fetch from a repository.',
    description: BODY,
    rawBody: mediaTypeOf('git-upload-pack', 'request'),
    answers: { 200: pack('The pack.', 'application/x-git-upload-pack-result'), ...REFUSALS },
    errors: [...COMMON.errors, 'git_request_too_large'],
    handle: handle as never,
  }),
  route({
    ...COMMON,
    method: 'POST',
    path: '/git/{owner}/{repo}/git-receive-pack',
    capability: 'git.push',
    summary: 'Push to a repository.',
    description: `The refs that it changes are checked and recorded; the pack is not inspected. ${BODY}`,
    rawBody: mediaTypeOf('git-receive-pack', 'request'),
    answers: { 200: pack('What became of each ref.', 'application/x-git-receive-pack-result'), ...REFUSALS },
    errors: [...COMMON.errors, 'git_request_too_large'],
    handle: handle as never,
  }),
];
