/** A parsed git request: what the decision uses, and what is sent to the code host. */
import type { CallRecord, PushReport } from '../audit/outcome.ts';
import type { GitAsk } from '../policy/facts.ts';

/** The body of a git request, as it is sent. */
export type GitBody = {
  bytes: number;
  /** Returns the body to send; undefined when it was consumed before and not kept. */
  open(): Buffer | AsyncIterable<Uint8Array> | undefined;
};

/** Parses the code host's report of a push from the pieces of its answer. */
export type ReadsReport = { push(piece: Uint8Array): void; read(): PushReport };

/** Advertisement of refs; git's probe (`0000`) before a long push; negotiation and pack of a fetch; a push. */
export type GitStep = 'advertised' | 'probe' | 'fetched' | 'pushed';

export type GitRequest = {
  ask: GitAsk;
  step: GitStep;
  /** Owner and name, without `.git`. */
  repository: { owner: string; name: string };
  /** `content-type`, `accept`, `git-protocol` and `user-agent`, as they are sent. */
  headers: Readonly<Record<string, string>>;
  /** The only media type that a successful answer may have. */
  answerType: string;
  body?: GitBody;
  /** Only for a push. */
  report?: ReadsReport;
};

/** Whether the step changes nothing and its answer is usually short: it is then recorded like other reads. */
export const isReadStep = (step: GitStep): boolean => step === 'advertised' || step === 'probe';

/** The members of a git request that are recorded. */
export const gitRecord = ({ step, ask }: GitRequest): CallRecord['git'] => ({
  reason: step === 'advertised' || step === 'probe' ? step : undefined,
  refs: ask.refs,
  pushOptions: ask.pushOptions ?? [],
});
