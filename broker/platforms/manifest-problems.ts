/** Cross-field validation of a manifest whose fields are valid by themselves. */
import type { z } from 'zod';
import { bodyKindsProblem } from '../policy/body-kinds.ts';
import { followProblem } from '../policy/follow-redirects.ts';
import { compileFreeRule } from '../policy/free-members.ts';
import { maskProblems } from '../policy/masks/mask.ts';
import { foldName } from '../policy/names.ts';
import { misplaced, parseOperation } from '../policy/operation.ts';
import { compileRefRule } from '../policy/refs/rules.ts';
import { compileTemplate } from '../sentences/template.ts';
import { appProblems } from './app-problems.ts';
import { contentProblems } from './content-problems.ts';
import type { ManifestFields } from './manifest-fields.ts';
import { scopesLike } from './scopes-like.ts';

type Fields = z.infer<typeof ManifestFields>;
type Problem = { path: (string | number)[]; message: string };

/** Returns the problems. */
export function manifestProblems(manifest: Fields): Problem[] {
  const { kind, auth, oauth, scopes } = manifest;
  const found: Problem[] = [];
  const only = (field: keyof typeof manifest, where: 'rest' | 'mcp') => {
    if (manifest[field] !== undefined && kind !== where) {
      found.push({ path: [field], message: `is for platforms of kind ${where} only` });
    }
  };
  for (const field of [
    'body',
    'raw_bodies',
    'graphql',
    'git_base_url',
    'git_user',
    'git_push_options',
    'encoded_slash',
    'failed_if',
    'refs',
    'follow',
    'bodies',
    'base_urls',
    'answer_urls',
    'error_status',
    'app_operations',
  ] as const)
    only(field, 'rest');
  only('attestation', 'mcp');
  if (kind === 'mcp' && manifest.refused_parameters !== undefined)
    found.push({
      path: ['refused_parameters'],
      message: 'is not for platforms of kind mcp: what a tool gets is for the tool',
    });
  if (manifest.body === 'form' && manifest.graphql !== undefined)
    found.push({ path: ['graphql'], message: 'cannot be combined with body: form, because GraphQL calls are JSON' });
  if (auth.type === 'oauth2' && kind !== 'mcp' && auth.client_id === undefined)
    found.push({
      path: ['auth', 'client_id'],
      message: 'is missing; register the broker at the platform, and give its id',
    });
  if (auth.type === 'oauth2' && auth.client_id !== undefined && auth.registration !== undefined)
    found.push({
      path: ['auth', 'registration'],
      message: 'cannot be combined with a client_id, which is registered already',
    });
  // An MCP server publishes its authorization server (RFC 9728).
  if (auth.type === 'oauth2' && auth.issuer === undefined && kind !== 'mcp') {
    for (const endpoint of ['authorization_endpoint', 'token_endpoint'] as const) {
      if (auth[endpoint] ?? oauth?.[endpoint]) continue;
      found.push({ path: ['auth', endpoint], message: 'is missing; give it, or an issuer that publishes it' });
    }
  }
  // Otherwise the MCP server would choose who receives the client secret, so a manifest with one has to name the authorization server.
  const namesServer = auth.type === 'oauth2' && (auth.issuer ?? auth.token_endpoint ?? oauth?.token_endpoint);
  if (kind === 'mcp' && auth.type === 'oauth2' && auth.client_secret !== undefined && !namesServer)
    found.push({
      path: ['auth', 'issuer'],
      message:
        'is missing; a client_secret goes to one server only, so name its issuer (or token_endpoint), or leave the secret out',
    });
  if (manifest.per_person?.enabled && auth.type !== 'oauth2') {
    found.push({ path: ['per_person'], message: 'needs auth of type oauth2: each person connects through OAuth' });
  }
  if ((auth.type === 'aws_sigv4' || auth.type === 'hmac') && manifest.git_base_url !== undefined)
    found.push({
      path: ['git_base_url'],
      message: 'needs a credential that can be sent; requests of git are not signed',
    });
  if (auth.type === 'aws_sigv4' && kind === 'mcp')
    found.push({ path: ['auth', 'type'], message: 'of AWS is for platforms of kind rest or graphql' });
  const carriesSecret = new Set(['authorization', ...credentialHeaders(auth)].map(foldName));
  const seen = new Set<string>();
  for (const field of ['headers', 'default_headers'] as const) {
    for (const name of Object.keys(manifest[field] ?? {})) {
      const folded = foldName(name);
      if (seen.has(folded))
        found.push({ path: [field, name], message: 'is given twice; the case of a name means nothing' });
      seen.add(folded);
      if (!carriesSecret.has(folded)) continue;
      found.push({ path: [field, name], message: 'carries a credential; give it to a connection as its secret' });
    }
  }
  for (const scope of Object.keys(manifest.needs ?? {})) {
    if (!Object.hasOwn(scopes, scope))
      found.push({ path: ['needs', scope], message: 'is not one of the scopes above' });
  }
  for (const [preset, patterns] of Object.entries(manifest.presets ?? {})) {
    patterns.forEach((pattern, i) => {
      if (scopesLike(pattern, Object.keys(scopes)).length > 0 || kind === 'mcp') return;
      found.push({ path: ['presets', preset, i], message: 'is not one of the scopes above' });
    });
  }
  return [
    ...found,
    ...appProblems(manifest),
    ...operationProblems(manifest),
    ...contentProblems(manifest),
    ...refProblems(manifest),
    ...followProblems(manifest),
    ...bodyProblems(manifest),
    ...maskedProblems(manifest),
    ...freeProblems(manifest),
    ...sentenceProblems(manifest),
  ];
}

/** Returns the headers, other than Authorization, that the broker sets because of `auth`. */
function credentialHeaders(auth: Fields['auth']): string[] {
  if (auth.type === 'header') return [auth.name];
  if (auth.type === 'hmac') return Object.keys(auth.headers);
  return auth.type === 'aws_sigv4' ? ['x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token'] : [];
}

function operationProblems(manifest: Fields): Problem[] {
  const rules = Object.entries(manifest.scopes).flatMap(([scope, texts]) =>
    texts.map((text, i) => ({ text, path: ['scopes', scope, i] })),
  );
  const recipients = Object.keys(manifest.recipients ?? {}).map((text) => ({ text, path: ['recipients', text] }));
  const contents = Object.keys(manifest.content_scopes ?? {}).map((text) => ({ text, path: ['content_scopes', text] }));
  const refs = Object.keys(manifest.refs ?? {}).map((text) => ({ text, path: ['refs', text] }));
  const sentences = Object.keys(manifest.sentences ?? {}).map((text) => ({ text, path: ['sentences', text] }));
  const follow = (manifest.follow ?? []).map((text, i) => ({ text, path: ['follow', i] }));
  const bodies = Object.keys(manifest.bodies ?? {}).map((text) => ({ text, path: ['bodies', text] }));
  const urls = Object.keys(manifest.base_urls ?? {}).map((text) => ({ text, path: ['base_urls', text] }));
  const answers = Object.keys(manifest.answer_urls ?? {}).map((text) => ({ text, path: ['answer_urls', text] }));
  const masks = Object.keys(manifest.masks ?? {}).map((text) => ({ text, path: ['masks', text] }));
  const statuses = Object.keys(manifest.error_status ?? {}).map((text) => ({ text, path: ['error_status', text] }));
  const free = Object.keys(manifest.free ?? {}).map((text) => ({ text, path: ['free', text] }));
  const apps = Object.keys(manifest.app_operations ?? {}).map((text) => ({ text, path: ['app_operations', text] }));
  const named = [
    rules,
    recipients,
    contents,
    refs,
    sentences,
    follow,
    bodies,
    urls,
    answers,
    masks,
    statuses,
    free,
    apps,
  ].flat();
  return named.flatMap(({ text, path }) => {
    const message = operationProblem(text, manifest);
    return message === undefined ? [] : [{ path, message }];
  });
}

/** Finds operations that are not reads. Malformed operations are reported by `operationProblems`. */
function followProblems({ follow = [] }: Fields): Problem[] {
  return follow.flatMap((text, i) => {
    const operation = read(() => parseOperation(text));
    const message = typeof operation === 'string' ? undefined : followProblem(operation);
    return message === undefined ? [] : [{ path: ['follow', i], message }];
  });
}

/** Finds bodies of operations that accept none, or an object in two ways. Malformed operations are reported by `operationProblems`. */
function bodyProblems({ bodies = {} }: Fields): Problem[] {
  return Object.entries(bodies).flatMap(([text, kinds]) => {
    const operation = read(() => parseOperation(text));
    const message = typeof operation === 'string' ? undefined : bodyKindsProblem(operation, [kinds].flat());
    return message === undefined ? [] : [{ path: ['bodies', text], message }];
  });
}

/** Finds masked members that are neither a name nor a path, and would mask nothing. */
function maskedProblems({ masks = {} }: Fields): Problem[] {
  return Object.entries(masks).flatMap(([text, members]) =>
    maskProblems({ members }).map(({ path: [, i], message }) => ({ path: ['masks', text, i ?? 0], message })),
  );
}

/** Finds malformed free members. Malformed operations are reported by `operationProblems`. */
function freeProblems({ free = {} }: Fields): Problem[] {
  return Object.entries(free).flatMap(([text, members]) => {
    const operation = read(() => parseOperation(text));
    const found = typeof operation === 'string' ? undefined : read(() => compileFreeRule(operation, members));
    return typeof found === 'string' ? [{ path: ['free', text], message: found }] : [];
  });
}

/** Finds malformed positions of refs. Malformed operations are reported by `operationProblems`. */
function refProblems({ refs = {} }: Fields): Problem[] {
  return Object.entries(refs).flatMap(([text, rule]) => {
    const operation = read(() => parseOperation(text));
    const found = typeof operation === 'string' ? undefined : read(() => compileRefRule(operation, rule));
    return typeof found === 'string' ? [{ path: ['refs', text], message: found }] : [];
  });
}

/** Finds malformed templates of sentences. Malformed operations are reported by `operationProblems`. */
function sentenceProblems({ sentences = {} }: Fields): Problem[] {
  return Object.entries(sentences).flatMap(([text, template]) => {
    const operation = read(() => parseOperation(text));
    const found = typeof operation === 'string' ? undefined : read(() => compileTemplate(operation, template));
    return typeof found === 'string' ? [{ path: ['sentences', text], message: found }] : [];
  });
}

function operationProblem(text: string, manifest: Fields): string | undefined {
  const found = read(() => parseOperation(text));
  return typeof found === 'string' ? found : misplaced(found, manifest);
}

/** Returns the compiled value, or the error message. */
function read<Compiled extends object>(compile: () => Compiled): Compiled | string {
  try {
    return compile();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
