/**
 * Authenticates pipelines: by a token that their own platform issues for the one job (GitHub Actions, GitLab CI, service accounts of
 * Kubernetes), so that no session of an owner has to be kept among a pipeline's secrets.
 */
import type { JWTPayload } from 'jose';
import type { Broker } from '../broker.ts';
import { storedUuid } from '../crypto/ids.ts';
import { findPipeline, notePipelineUse } from '../store/pipelines.ts';
import { findRestored } from '../store/restored.ts';
import type { PipelineTable } from '../store/tables/organisations.ts';
import { claimsOf } from './claimed.ts';
import { issuerKeys } from './issuer-keys.ts';
import { SESSION_SECONDS } from './owner-session.ts';
import type { AuthRefusal, PipelinePrincipal, ProviderUnavailable } from './principal.ts';
import { isPersonsToken } from './provider-identity.ts';

export type AuthenticatePipeline = (token: string) => Promise<PipelinePrincipal | AuthRefusal | ProviderUnavailable>;

/**
 * What stands in `aud` of the tokens of a pipeline. With the id of the pipeline, and not the address of the broker alone: a token is then good
 * in the one organisation that it is meant for, whoever else names the same subject.
 */
export const audienceOf = (baseUrl: string, id: string): string => `${baseUrl}/pipelines/${id}`;

/** Whether a token claims to be a pipeline's, by its audience. Unverified; it only selects how the token is authenticated. */
export const claimsPipeline = (baseUrl: string, token: string): boolean =>
  claimedPipeline(baseUrl, token) !== undefined;

/** The id in the unverified `aud`, which has to be the only one; '' where it is no id. */
function claimedPipeline(baseUrl: string, token: string): string | undefined {
  const { aud } = claimsOf(token);
  const only: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  const prefix = audienceOf(baseUrl, '');
  return typeof only === 'string' && only.startsWith(prefix) ? storedUuid(only.slice(prefix.length)) : undefined;
}

/** Makes it. */
export function pipelineAuthenticator(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'log' | 'store' | 'outbound'>,
): AuthenticatePipeline {
  const keysOf = issuerKeys(broker);
  return async (token) => {
    const id = claimedPipeline(broker.baseUrl, token) ?? '';
    const pipeline = id === '' ? undefined : await findPipeline(broker.store.db, id);
    // Before anything is verified: only issuers that an admin named are asked for keys.
    if (!pipeline || claimsOf(token).iss !== pipeline.issuer)
      return refused(
        'invalid_token',
        'The audience (aud) of the token names no pipeline that trusts its issuer (iss).',
      );
    const keys = await keysOf({ issuer: pipeline.issuer, jwks_uri: pipeline.jwks_uri ?? undefined });
    const verified = await keys.verify(token, pipeline.issuer);
    if (verified.kind === 'unavailable')
      return {
        kind: 'unavailable',
        detail: `Cannot fetch the signing keys (JWKS) of ${pipeline.issuer}, which issues the tokens of this pipeline.`,
      };
    if (verified.kind === 'refused') return refused(verified.code, REFUSED[verified.code]);
    const { claims, header } = verified;
    if (!isPersonsToken(header, claims))
      return refused('invalid_token', 'The token is of a type that identifies nobody.');
    if ((claims.iat ?? 0) <= broker.clock() / 1000 - SESSION_SECONDS)
      return refused('token_expired', 'The token is older than 12 hours: let the pipeline get a new one.');
    if (claims.sub !== pipeline.subject) return refused('invalid_token', otherSubject(claims));
    if (await findRestored(broker.store.db, pipeline.organisation_id))
      return refused(
        'invalid_token',
        'The store was restored from a backup, in which a pipeline may stand that was removed since. An admin has to end the review first.',
      );
    await notePipelineUse(broker.store.db, pipeline, broker.clock());
    const { organisation_id: organisationId, role } = pipeline;
    return { kind: 'pipeline', pipeline, organisationId, role, detail: detailOf(pipeline, claims) };
  };
}

const refused = (code: AuthRefusal['code'], detail: string): AuthRefusal => ({ kind: 'refused', code, detail });

const REFUSED = {
  invalid_token: 'The token cannot be verified with the keys that its issuer publishes.',
  invalid_signature: 'The signature of the token does not match the key that its issuer publishes.',
  token_expired: 'The token has expired: let the pipeline get a new one.',
} as const satisfies Partial<Record<AuthRefusal['code'], string>>;

/** The subject is the token's own word, verified, and what has to be compared with what an admin wrote. */
const otherSubject = ({ sub }: JWTPayload): string =>
  `The token is of the subject ${shown(sub) ?? '(not in a form that could be shown)'}, and the pipeline trusts another one.`;

/** Printable ASCII alone, as the subjects of all such platforms are. */
function shown(value: unknown): string | undefined {
  return typeof value === 'string' && /^[\x21-\x7e]{1,255}$/.test(value) ? value : undefined;
}

/** Claims of GitHub and of GitLab: of what, and who started it. */
const TOLD = { sha: 'commit', run_id: 'run', job_id: 'job', actor: 'by', user_login: 'by' } as const;

function detailOf({ name, subject }: PipelineTable, claims: JWTPayload): string {
  const told = Object.entries(TOLD).flatMap(([claim, word]) => {
    const value = shown(claims[claim]);
    return value === undefined ? [] : [`${word} ${value}`];
  });
  return [`pipeline ${name}`, subject, ...told].join(', ');
}
