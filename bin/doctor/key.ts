/** The checks of `doctor` on the agent's credential: its key, or the token of its workload. */
import { createPrivateKey } from 'node:crypto';
import { agentSigner } from '../../mcp/client/signer.ts';
import type { Profile } from '../../mcp/profile.ts';
import { PROGRAM } from '../program-name.ts';
import type { Answer, Check } from './check.ts';

const newKey = ({ agentId }: Profile): string =>
  `Let an owner run "${PROGRAM} agent bootstrap ${agentId} --rotate" for a token, and bind a new key with it: ${PROGRAM} agent create NAME --invite abt_…`;

/** Checks the private key without the broker. */
export function examineKeyItself(profile: Profile): Check | undefined {
  if ('tokenFile' in profile) return examineToken(profile);
  const { privateKey } = profile;
  const failed = (detail: string): Check => ({ check: 'key', result: 'failed', detail, advice: newKey(profile) });
  if (!privateKey.includes('-----BEGIN PRIVATE KEY-----'))
    return failed('the private key is not in PKCS#8 PEM (-----BEGIN PRIVATE KEY-----)');
  try {
    const key = createPrivateKey(privateKey);
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
    if (key.asymmetricKeyType !== 'rsa') return failed(`the private key is no RSA key but ${key.asymmetricKeyType}`);
    if (bits < 2048) return failed(`the RSA key has ${bits} bits; 2048 are needed`);
    return undefined;
  } catch {
    return failed('the private key is damaged');
  }
}

/** Checks that there is a token of the workload. */
function examineToken(profile: Profile): Check | undefined {
  try {
    agentSigner(profile)();
    return undefined;
  } catch (error) {
    const advice =
      'Have the platform on which the agent runs put its token there (AGENT_BROKER_TOKEN_FILE, or token_file).';
    return { check: 'key', result: 'failed', detail: (error as Error).message, advice };
  }
}

/** Checks at the broker a token that was signed with the key, or that belongs to the workload. */
export function examineKey(profile: Profile, me: Answer | undefined): Check {
  const { agentId } = profile;
  const isSigned = !('tokenFile' in profile);
  const failed = (detail: string, advice: string): Check => ({ check: 'key', result: 'failed', detail, advice });
  if (me?.status === 200)
    return { check: 'key', result: 'ok', detail: `the broker knows ${agentId} by this ${isSigned ? 'key' : 'token'}` };
  if (!me || me.status === 429 || me.status >= 500)
    return failed(
      `the broker does not answer who ${agentId} is (${me?.status ?? 'no answer'})`,
      'Try again in a minute.',
    );
  if (!isSigned)
    return failed(
      `the broker refuses the token: ${me.body.detail ?? me.body.error ?? me.status}`,
      `An owner sees which workload is set with: ${PROGRAM} agent show ${agentId}`,
    );
  if (me.body.error === 'invalid_signature')
    return failed(
      `the broker does not know ${agentId} by this key`,
      `The agent is unknown or deleted, has no key yet, or has another one. ${newKey(profile)}`,
    );
  return failed(
    `the broker refuses the token: ${me.body.detail ?? me.body.error ?? me.status}`,
    'See the result for the clock above; then check agent_id and owner_id in the profile.',
  );
}
