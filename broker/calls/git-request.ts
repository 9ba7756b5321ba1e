/** A git request, as its door has read it: what is decided by, and what is sent to the code host. */
import type { CallRecord, PushReport } from '../audit/outcome.ts';
import type { GitAsk } from '../policy/facts.ts';

/** The body of a git request, as it is sent. */
export type GitBody = {
  bytes: number;
  /** What is to be sent; undefined when it was taken before and is not kept. */
  open(): Buffer | AsyncIterable<Uint8Array> | undefined;
};

/** Reads what the code host reports of a push from the pieces of its answer. */
export type ReadsReport = { push(piece: Uint8Array): void; read(): PushReport };

/** Advertisement of refs; git's probe (`0000`) before a long push; negotiation and pack of a fetch; a push. */
export type GitStep = 'advertised' | 'probe' | 'fetched' | 'pushed';

export type GitRequest = {
  ask: GitAsk;
  step: GitStep;
  /** Without `.git`. */
  repository: { owner: string; name: string };
  /** `content-type`, `accept`, `git-protocol` and `user-agent`, as they are sent. */
  headers: Readonly<Record<string, string>>;
  /** The one media type that an answer may have. */
  answerType: string;
  body?: GitBody;
  /** Of a push. */
  report?: ReadsReport;
};

/** Whether an answer changes nothing and is short as a rule: then it is recorded as other reads are. */
export const isReadStep = (step: GitStep): boolean => step === 'advertised' || step === 'probe';

/** What of it goes on record. */
export const gitRecord = ({ step, ask }: GitRequest): CallRecord['git'] => ({
  reason: step === 'advertised' || step === 'probe' ? step : undefined,
  refs: ask.refs,
  pushOptions: ask.pushOptions ?? [],
});
