/** What the tools know of one request and of the client that made it, whatever protocol revision it speaks. */

export type ToolRequest = {
  /** The client takes a task in place of a result (extension io.modelcontextprotocol/tasks), declared with this request. */
  takesTasks: boolean;
  /**
   * How a person can be asked to open a link: by an `input_required` result, by a request of ours, by an error after which the
   * client makes the call again (where no request of ours would be answered), or not at all.
   */
  opensLinks: 'by_result' | 'by_request' | 'by_error' | 'no';
  /** Tells how it goes; does nothing when the client did not ask to be told. */
  progress: (message: string, secondsWaited: number) => Promise<void>;
  /** Aborted when the client cancels the request, or goes away. */
  signal: AbortSignal;
  /** What was asked for with an `input_required` result has been answered. */
  resumed?: { state: string; action: 'accept' | 'decline' | 'cancel' } | undefined;
  /** With `by_request`: asks the person to open the link. Resolves with what they did; rejects when nobody could be asked. */
  openLink?: (link: Link, signal: AbortSignal) => Promise<'accept' | 'decline' | 'cancel'>;
};

/** `id`: names the asking, so that it can be taken back when it is over. */
export type Link = { id: string; url: string; message: string };
