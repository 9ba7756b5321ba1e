/** The broker of a run, with tokens of the agent in the profile. */
import { AgentKeyError, agentSigner } from '../../mcp/client/signer.ts';
import { type Profile, ProfileError, readProfile } from '../../mcp/profile.ts';
import type { Broker } from '../../mcp/sidecar/forward.ts';
import { CommandFailed } from '../failure.ts';

/**
 * Reads the profile: `file`, or that of the environment. It is read again whenever a token was refused, because the agent's key may have been replaced
 * during the run; tokens of the old key would also be counted as attempts with a wrong key.
 *
 * @throws CommandFailed when there is no usable profile
 */
export function brokerOf(file: string | undefined): Broker {
  try {
    const profile = readProfile(process.env, file);
    let sign = agentSigner(profile);
    // Reports a missing token before the command starts, instead of at its first request.
    if ('tokenFile' in profile) sign();
    return {
      url: profile.url,
      token: () => sign(),
      refused: () => {
        sign = signerNow(profile, file) ?? sign;
      },
    };
  } catch (error) {
    if (isOfProfile(error)) throw new CommandFailed(error.message);
    throw error;
  }
}

const isOfProfile = (error: unknown): error is Error => error instanceof ProfileError || error instanceof AgentKeyError;

/** Undefined when the profile is not usable at the moment, or is another agent's now: the run was started with what this one is granted. */
function signerNow({ url, agentId }: Profile, file: string | undefined): (() => string) | undefined {
  try {
    const profile = readProfile(process.env, file);
    return profile.url === url && profile.agentId === agentId ? agentSigner(profile) : undefined;
  } catch (error) {
    if (isOfProfile(error)) return undefined;
    throw error;
  }
}
