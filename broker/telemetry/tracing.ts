/** Traces of calls, as the rooms see them. What makes them is loaded only where they are sent somewhere (open-telemetry.ts). */

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
