/**
 * Authenticates pipelines by a token that their own platform issues for the one job, so that no owner session has to be stored among a pipeline's
 * secrets.
 */
import type { JWTPayload } from 'jose';
import type { Broker } from '../broker.ts';
import { storedUuid } from '../crypto/ids.ts';
import { present } from '../runtime/present.ts';
import { findPipeline, notePipelineUse } from '../store/pipelines.ts';
import { findRestored } from '../store/restored.ts';
import type { PipelineTable } from '../store/tables/organisations.ts';
import { isIssuedElsewhere } from './claimed.ts';
import { audienceBelow, shown, type VerifyIssued } from './issued-token.ts';
import type { AuthRefusal, PipelinePrincipal, ProviderUnavailable } from './principal.ts';

export type AuthenticatePipeline = (token: string) => Promise<PipelinePrincipal | AuthRefusal | ProviderUnavailable>;

/**
 * The `aud` of a pipeline's tokens. Contains the id of the pipeline, not only the address of the broker: a token is then valid only in the
 * organisation that it is meant for, even when another organisation names the same subject.
 */
export const audienceOfPipeline = (baseUrl: string, id: string): string => `${baseUrl}/pipelines/${id}`;

/** Whether a token claims to be a pipeline's, by its audience. Unverified; the result only selects how the token is authenticated. */
export const claimsPipeline = (baseUrl: string, token: string): boolean =>
  audienceBelow(audienceOfPipeline(baseUrl, ''), token) !== undefined;

/** Returns the refusal of a token that another party issued with another audience than that of a pipeline; undefined for other tokens. */
export const refuseOtherPipelineAudience = (baseUrl: string, token: string): AuthRefusal | undefined =>
  isIssuedElsewhere(baseUrl, token)
    ? {
        kind: 'refused',
        code: 'invalid_token',
        detail: `This is no session of an owner, and its audience (aud) is not that of a pipeline: it has to be the address of the pipeline, ${audienceOfPipeline(baseUrl, '…')}, and nothing else.`,
      }
    : undefined;

/** Returns the authenticator. */
export function pipelineAuthenticator(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'store'>,
  verify: VerifyIssued,
): AuthenticatePipeline {
  const { db } = broker.store;
  return async (token) => {
    const id = storedUuid(audienceBelow(audienceOfPipeline(broker.baseUrl, ''), token) ?? '');
    const pipeline = id === '' ? undefined : await findPipeline(db, id);
    const verified = await verify(token, pipeline, 'pipeline');
    if (verified.kind !== 'verified') return verified;
    const trusted = present(pipeline, 'pipeline');
    const { organisation_id: organisationId, role } = trusted;
    if (await findRestored(db, organisationId))
      return {
        kind: 'refused',
        code: 'invalid_token',
        detail:
          'The store was restored from a backup, which may contain pipelines that were removed since then. An admin has to end the review first.',
      };
    await notePipelineUse(db, trusted, broker.clock());
    return { kind: 'pipeline', pipeline: trusted, organisationId, role, detail: detailOf(trusted, verified.claims) };
  };
}

/** Claims of GitHub and GitLab that are recorded: the commit, the run or job, and who started it. */
const RECORDED_CLAIMS = { sha: 'commit', run_id: 'run', job_id: 'job', actor: 'by', user_login: 'by' } as const;

function detailOf({ name, subject }: PipelineTable, claims: JWTPayload): string {
  const told = Object.entries(RECORDED_CLAIMS).flatMap(([claim, word]) => {
    const value = shown(claims[claim]);
    return value === undefined ? [] : [`${word} ${value}`];
  });
  return [`pipeline ${name}`, subject, ...told].join(', ');
}
