/** Connects to the broker as a pipeline, with a token that the job's platform issues for it. */
import { claimsOf } from '../../broker/auth/claimed.ts';
import { type BrokerConnection, type ConnectionOptions, connectAsOwner, givenToken } from '../connection.ts';
import { CommandFailed } from '../failure.ts';
import { refuseOwner } from '../named-owner.ts';

/** `audience`: as `pipeline add` printed it: the address of the broker and the id of the pipeline. Throws CommandFailed. */
export async function connectAsPipeline(audience: string, options: ConnectionOptions): Promise<BrokerConnection> {
  const [, url] = /^(https?:\/\/.+)\/pipelines\/[0-9a-f-]{36}$/.exec(audience) ?? [];
  if (url === undefined)
    throw new CommandFailed(
      'The pipeline (--pipeline, or AGENT_BROKER_PIPELINE) is an address that ends with /pipelines/ and an id, as "pipeline add" prints it.',
    );
  refuseOwner(options, 'a pipeline (--pipeline, or AGENT_BROKER_PIPELINE)');
  const given = givenToken(options);
  if (given !== undefined && [claimsOf(given).aud].flat().join() !== audience)
    throw new CommandFailed(
      `The token of this pipeline (--owner-token, or AGENT_BROKER_OWNER_TOKEN) is not issued for ${audience}: have the job ask for that audience (aud), and for no other.`,
    );
  const ownerToken = given ?? (await fromGitHub(audience));
  return await connectAsOwner({ url: options.url ?? url, ownerToken });
}

/** Requests the token of the running job (https://docs.github.com/en/actions/reference/security/oidc, "Methods for requesting the OIDC token"). */
async function fromGitHub(audience: string): Promise<string> {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: token } = process.env;
  if (url === undefined || token === undefined)
    throw new CommandFailed(
      'There is no token of this pipeline. On GitHub Actions, give the job "permissions: id-token: write"; elsewhere, put its token into AGENT_BROKER_OWNER_TOKEN.',
    );
  const asked = new URL(url);
  asked.searchParams.set('audience', audience);
  const response = await fetch(asked, {
    headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
    signal: AbortSignal.timeout(30_000),
  }).catch(() => undefined);
  const answer: unknown = response?.ok ? await response.json().catch(() => undefined) : undefined;
  if (typeof answer === 'object' && answer !== null && 'value' in answer && typeof answer.value === 'string')
    return answer.value;
  throw new CommandFailed(
    `GitHub Actions gave no token for this job (${response === undefined ? 'no answer' : `status ${response.status}`}).`,
  );
}
