/**
 * Measures where the time of a call goes, and records its trace if it has one. The tracing libraries are loaded only when traces are
 * exported (open-telemetry.ts).
 */
import type { Metrics } from './metrics.ts';

/** Must never contain a body, path, header or credential. */
export type SpanAttributes = Record<string, string | number>;

export type StepName = 'decide' | 'hold' | 'forward' | 'record';

/** A step of a call. */
export type StepSpan = {
  /** The trace context for requests made in this step (W3C Trace Context, traceparent). */
  traceparent: string;
  set(attributes: SpanAttributes): void;
  /** Ends the step. `error`: a low-cardinality error class. */
  end(error?: string): void;
};

/** A traced call. */
export type CallSpan = {
  /** 32 hexadecimal digits. */
  traceId: string;
  step(name: StepName): StepSpan;
  set(attributes: SpanAttributes): void;
  end(error?: string): void;
};

export type Tracing = {
  /**
   * Begins the trace of a call; undefined when it is not sampled. `traceparent`: of the client. It becomes a link, and does not affect
   * sampling.
   */
  begin(traceparent: string | undefined): CallSpan | undefined;
  /** Exports what is pending, for 2 s at most. */
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

  /** `traceparent`: of the client, which is authenticated. */
  constructor({ metrics, tracing }: Telemetry, traceparent: string | undefined) {
    this.#metrics = metrics;
    this.#span = tracing.begin(traceparent);
  }

  /** The trace id of the call; undefined when it is not traced. */
  get traceId(): string | undefined {
    return this.#span?.traceId;
  }

  /** Runs a decision as a step, with its verdict as attributes. */
  decide<T extends { verdict: { kind: string; reason: string } }>(work: () => T): T {
    if (this.#span === undefined) return work();
    const step = this.#span.step('decide');
    const decided = work();
    const { kind, reason } = decided.verdict;
    step.set({ 'agent_broker.verdict': kind, 'agent_broker.reason': reason });
    step.end();
    return decided;
  }

  /** Runs the storing of an audit row, or, with `hold`, of a held call with its row, as a step. */
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

  /** Stores an intent and then runs the call; only the time until `stored` is called counts as audit time. */
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

  /** Runs the request to a platform as a step: `work` gets the trace context to send. Returns its duration in milliseconds too. */
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

  /** Ends the call. `about`: its attributes; called only when it is traced. */
  end(about: () => SpanAttributes): void {
    this.#metrics.call({ total: performance.now() - this.#began, audit: this.#audit, upstream: this.#upstream });
    if (this.#span === undefined) return;
    this.#span.set(about());
    this.#span.end();
  }
}
