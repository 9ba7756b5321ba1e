/** Determines the caller of a call: the person named by its arguments, or the one the server is configured for. */
import { CallerProblem } from '../caller-problem.ts';
import type { Action, Caller } from '../client/action.ts';
import { type ToolAnswer, toolAnswer } from './answer.ts';
import type { ToolHost } from './tool-host.ts';

type Named = { ok: true; action: Action } | { ok: false; answer: ToolAnswer };

const refused = (code: string, detail: string, next: string): Named => ({
  ok: false,
  answer: toolAnswer({ status: 'failed', code, detail: `${detail} Nothing was sent.`, next }),
});

/**
 * Returns the call with its caller. A server configured for one person refuses calls for anybody else, whatever the model requests: an injected
 * text could otherwise make it act for another person.
 */
export async function withCaller({ configured, personKey }: ToolHost, action: Action): Promise<Named> {
  if (configured === undefined) return { ok: true, action };
  let caller: Caller;
  try {
    caller = configured();
  } catch (error) {
    if (!(error instanceof CallerProblem)) throw error;
    const next = 'Tell the person you work for: they have to correct this. No restart is needed afterwards.';
    return refused('caller_unreadable', error.message, next);
  }
  if (action.caller !== undefined && (await personKey(action.caller)) !== (await personKey(caller)))
    return refused(
      'caller_differs',
      'This server is set up to call for one person, and the call names another one.',
      'Leave caller out. For somebody else, tell the person you work for: it takes a server that is set up for them, or for nobody.',
    );
  return { ok: true, action: { ...action, caller } };
}
