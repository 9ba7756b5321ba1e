/**
 * Sends with the agent's profile. An invalid profile does not prevent the start: each response says what the person has to do, and the
 * next call reads the profile again.
 */

import type { Halt } from '../client/action.ts';
import { errorOf } from '../client/broker-error.ts';
import { bodyOf } from '../client/reply-body.ts';
import { type BrokerReply, BrokerUnreachable, type Send } from '../client/send.ts';
import { signedSend } from '../client/signed-send.ts';
import { AgentKeyError, agentSigner } from '../client/signer.ts';
import { type Profile, ProfileError } from '../profile.ts';

/** `read` throws ProfileError. `tell` is called with each problem for the person once, until a request succeeds. */
export function profileSend(read: () => Profile, tell: (text: string) => void): Send {
  let ready: Send | undefined;
  let told: string | undefined;
  const tellOnce = (text: string | undefined) => {
    if (text !== undefined && text !== told) tell(text);
    told = text;
  };
  return async (request) => {
    try {
      ready ??= sendFor(read());
      const reply = await ready(request);
      tellOnce(reply.status === 401 ? refusedToken(reply) : reply.status === 403 ? halted(reply) : undefined);
      // The key may have been rotated: the next request reads the profile again.
      if (reply.status === 401) ready = undefined;
      return reply;
    } catch (error) {
      const isProfile = error instanceof ProfileError || error instanceof AgentKeyError;
      const isUnreachable = error instanceof BrokerUnreachable;
      if (isProfile || isUnreachable) tellOnce(error.message);
      // The broker may have moved: the next request goes to the address that the profile has then.
      if (isUnreachable) ready = undefined;
      if (isProfile) throw new BrokerUnreachable(error.message, { code: 'no_profile', maybeSent: false });
      throw error;
    }
  };
}

/** Returns a notice of the halt, for the person; undefined for refusals of a single call, which only the model gets. */
function halted(reply: BrokerReply): string | undefined {
  const { halt } = bodyOf(reply) as { halt?: Halt };
  return (
    halt && `This agent is halted (${halt.cause}). ${halt.detail ?? ''} ${halt.instructions}`.replaceAll(/ +/g, ' ')
  );
}

function refusedToken(reply: BrokerReply): string {
  const { message, clockAheadSeconds = 0 } = errorOf(reply, bodyOf(reply));
  const clock =
    Math.abs(clockAheadSeconds) > 25
      ? ` The clock of this machine is ${Math.abs(clockAheadSeconds)} seconds ${clockAheadSeconds > 0 ? 'ahead of' : 'behind'} the broker’s.`
      : '';
  return `The broker does not accept this agent's token: ${message}${clock} Run "npx agent-broker doctor" to see what is wrong.`;
}

function sendFor(profile: Profile): Send {
  const token = agentSigner(profile);
  const bare = withoutPath(profile.url);
  if (bare !== undefined)
    throw new ProfileError(`The profile's url has a path: write ${bare} instead of ${profile.url}`);
  try {
    return signedSend({ url: profile.url, token });
  } catch {
    throw new ProfileError(`The profile's url is no http or https address: ${profile.url}`);
  }
}

/** Returns the address without its path, if it has one; undefined otherwise. A broker has none: the addresses of `/mcp` and of the console do. */
function withoutPath(url: string): string | undefined {
  const parsed = URL.parse(url);
  return parsed && parsed.pathname !== '/' ? parsed.origin : undefined;
}
