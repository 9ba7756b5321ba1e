/** A request and the capabilities of its client, independent of the protocol revision. */

export type ToolRequest = {
  /** The client accepts a task instead of a result (extension io.modelcontextprotocol/tasks), declared with this request. */
  takesTasks: boolean;
  /**
   * How a person can be asked to open a link: by an `input_required` result, by a request to the client, by an error after which
   * the client repeats the call (where it would not answer requests), or not at all.
   */
  opensLinks: 'by_result' | 'by_request' | 'by_error' | 'no';
  /** Sends a progress notification; no-op when the client did not request any. */
  progress: (message: string, secondsWaited: number) => Promise<void>;
  /** The W3C trace context of the request, in `_meta` (SEP-414). */
  traceparent?: string | undefined;
  /** Aborted when the client cancels the request, or disconnects. */
  signal: AbortSignal;
  /** The response to an earlier `input_required` result. */
  resumed?: { state: string; action: 'accept' | 'decline' | 'cancel' } | undefined;
  /** With `by_request`: asks the person to open the link. Resolves with their action; rejects when that is not possible. */
  openLink?: (link: Link, signal: AbortSignal) => Promise<'accept' | 'decline' | 'cancel'>;
};

/** `id`: the id of the elicitation, needed to complete it. */
export type Link = { id: string; url: string; message: string };
