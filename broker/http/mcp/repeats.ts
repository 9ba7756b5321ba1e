/** Detects repeated calls for the tools of `/mcp`. */
import { type PersonKey, textKey } from '../../../mcp/tools/person-key.ts';
import { newRepeat, type Repeats } from '../../../mcp/tools/repeats.ts';
import type { AgentPrincipal } from '../../auth/principal.ts';
import { agentRepeats } from '../../calls/mcp/repeats.ts';
import type { Services } from '../../services.ts';
import { CallerIdentity } from '../../wire/action.ts';

/** Returns the repeats of one agent. `failed`: logs why a submitted call could not be noted. */
export function storedRepeats(
  { broker }: Pick<Services, 'broker'>,
  who: AgentPrincipal,
  failed: (error: unknown) => unknown,
): Repeats {
  const own = agentRepeats(broker, who);
  const noted = async (note: Promise<void>) => void (await note.catch(failed));
  return {
    find: own.find,
    begin: (hash, reason) => own.begin(hash, { key: newRepeat(reason).key, reason }),
    held: (...words) => noted(own.held(...words)),
    end: (...words) => noted(own.end(...words)),
    endApproval: (id) => noted(own.endApproval(id)),
    drop: (...words) => noted(own.drop(...words)),
  };
}

/** Returns a person's key: the hash by which the organisation knows the person, if the assertion can be verified. */
export const personKeyOf =
  ({ people }: Services, { agent }: AgentPrincipal): PersonKey =>
  async (caller) => {
    const read = CallerIdentity.safeParse(caller);
    const identified = read.success ? await people.identify(agent.organisation_id, read.data) : undefined;
    return identified?.ok ? identified.who.hash : textKey(JSON.stringify(caller));
  };
