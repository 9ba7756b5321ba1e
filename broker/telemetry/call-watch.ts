/**
 * Where the time of one call goes, and its trace, if it has one. What makes traces is loaded only where they are sent somewhere
 * (open-telemetry.ts).
 */
import type { Metrics } from './metrics.ts';

/** Never a body, a path, a header or a credential. */
export type SpanAttributes = Record<string, string | number>;

export type StepName = 'decide' | 'hold' | 'forward' | 'record';

/** A part of the work of a call. */
export type StepSpan = {
  /** The trace context for whoever is asked in this step (W3C Trace Context, traceparent). */
  traceparent: string;
  set(attributes: SpanAttributes): void;
  /** Ends it. `error`: a class of what went wrong, of few. */
  end(error?: string): void;
};

/** A call that is traced. */
export type CallSpan = {
  /** 32 hexadecimal digits. */
  traceId: string;
  step(name: StepName): StepSpan;
  set(attributes: SpanAttributes): void;
  end(error?: string): void;
};

export type Tracing = {
  /**
   * Begins the trace of a call, unless it is none of those that are traced. `traceparent`: of whoever asks. It becomes a link, and
   * decides nothing.
   */
  begin(traceparent: string | undefined): CallSpan | undefined;
  /** Sends what is left, for 2 s at most. */
  stop(): Promise<void>;
};

export const NO_TRACING: Tracing = { begin: () => undefined, stop: async () => {} };

export type Telemetry = { metrics: Metrics; tracing: Tracing };

export class CallWatch {
  readonly #metrics: Metrics;
  readonly #span: CallSpan | undefined;
  readonly #began = performance.now();
  #audit = 0;
  #upstream = 0;

  /** `traceparent`: of whoever asks, who is authenticated. */
  constructor({ metrics, tracing }: Telemetry, traceparent: string | undefined) {
    this.#metrics = metrics;
    this.#span = tracing.begin(traceparent);
  }

  /** The trace that the call is in; undefined: it is not traced. */
  get traceId(): string | undefined {
    return this.#span?.traceId;
  }

  /** Makes a decision, which says no, or something else, by its kind. */
  decide<T extends { verdict: { kind: string; reason: string } }>(work: () => T): T {
    if (this.#span === undefined) return work();
    const step = this.#span.step('decide');
    const decided = work();
    const { kind, reason } = decided.verdict;
    step.set({ 'agent_broker.verdict': kind, 'agent_broker.reason': reason });
    step.end();
    return decided;
  }

  /** Stores what is to be on record: the audit row, and with it, `hold`, the call itself. */
  async record<T>(work: () => Promise<T>, name: 'record' | 'hold' = 'record'): Promise<T> {
    const step = this.#span?.step(name);
    const began = performance.now();
    let isDone = false;
    try {
      const done = await work();
      isDone = true;
      return done;
    } finally {
      this.#audit += performance.now() - began;
      step?.end(isDone ? undefined : 'not_recorded');
    }
  }

  /** Stores an intent, and does what is done once it is stored, which is not part of it. */
  async intend<T>(work: (stored: () => void) => Promise<T>): Promise<T> {
    const step = this.#span?.step('record');
    step?.set({ 'agent_broker.record.state': 'intent' });
    const began = performance.now();
    let isStored = false;
    try {
      return await work(() => {
        isStored = true;
        this.#audit += performance.now() - began;
        step?.end();
      });
    } finally {
      if (!isStored) step?.end('not_recorded');
    }
  }

  /** Asks a platform: `work` gets the trace context to send along. Answers how long that took, in milliseconds, too. */
  async forward<T>(
    work: (traceparent: string | undefined) => Promise<T>,
    about: () => SpanAttributes,
  ): Promise<{ forwarded: T; ms: number; step: StepSpan | undefined }> {
    const step = this.#span?.step('forward');
    step?.set(about());
    const began = performance.now();
    const forwarded = await work(step?.traceparent).catch((error) => {
      step?.end('failed');
      throw error;
    });
    const ms = performance.now() - began;
    this.#upstream += ms;
    return { forwarded, ms, step };
  }

  /** The call is over. `about`: how it ended; asked only where there is a trace. */
  end(about: () => SpanAttributes): void {
    this.#metrics.call({ total: performance.now() - this.#began, audit: this.#audit, upstream: this.#upstream });
    if (this.#span === undefined) return;
    this.#span.set(about());
    this.#span.end();
  }
}
