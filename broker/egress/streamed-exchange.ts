/**
 * An exchange whose answer is streamed: in bounded memory, with back-pressure from the reader, without the credential. Limited by idle time
 * and, where the request says so, by bytes; not by total time.
 */
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { isTextType } from './answers/answer.ts';
import type { CallLease } from './call-lease.ts';
import type { CredentialSearch, SearchForms, StreamedCredential } from './credential-search/stream.ts';
import { Exchange, type ResponseHeaders } from './exchange.ts';
import { contentCodings } from './inflate.ts';
import { type Inflater, inflateStream } from './inflate-stream.ts';
import type { StreamHasher } from './stream-hasher.ts';
import { Meter, type StreamEnding, StreamedBody, type Transferred } from './streamed-body.ts';
import { OutboundFault, type Unreachable, type UnreachableCode } from './unreachable.ts';

export type StreamedAnswer = {
  kind: 'stream';
  /** 200 to 599. */
  status: number;
  /**
   * As the upstream sent them, names in lower case, except `content-encoding` and `content-length` of a decompressed body. Untrusted:
   * nothing of it may reach an agent unread.
   */
  headers: ResponseHeaders;
  /** Without the credential. Must be read to its end, or cancelled. */
  body: StreamedBody;
  /** Size and hash of the request body sent so far. Call once. */
  uploaded(): Promise<Transferred>;
  /** Whether the credential was redacted from the body so far. */
  redacted(): boolean;
};

export type StreamLimits = {
  /** Milliseconds without a byte, including the wait for a connection. */
  idleTimeoutMs: number;
  /** Milliseconds that the platform may be paused for the reader. */
  takeTimeoutMs: number;
  /** Bytes of the answer, after decompression. */
  maxResponseBytes: number;
  /** The same limit for an answer that is compressed although that was not requested. */
  maxInflatedBytes: number;
};

export type StreamOptions = {
  limits: StreamLimits;
  search?: StreamSearch | undefined;
  /** The lease on which queued bytes are counted. */
  lease?: CallLease | undefined;
  hasher: StreamHasher;
};

/** What to search for in the answer. In text it is replaced; any other answer is broken off. */
export type StreamSearch = { credential: StreamedCredential; forms?: SearchForms };

const ENDINGS: Partial<Record<UnreachableCode, StreamEnding>> = {
  timeout: 'idle',
  too_large: 'over_limit',
  closed: 'client_closed',
  client_closed: 'client_closed',
  access_ended: 'access_ended',
};

export class StreamedExchange extends Exchange {
  /** Resolves with the head of the answer, or with the failure. */
  readonly answer: Promise<StreamedAnswer | Unreachable>;
  readonly #limits: StreamLimits;
  readonly #wanted: StreamSearch | undefined;
  readonly #onOver: (exchange: Exchange) => void;
  readonly #uploaded: Meter;
  readonly #body: StreamedBody;
  #resolve!: (answer: StreamedAnswer | Unreachable) => void;
  #settled = false;
  #over = false;
  #uploadFailed = false;
  #search: CredentialSearch | undefined;
  #inflater: Inflater | undefined;
  #size = 0;
  #maxBytes: number;

  /** @param onOver called when neither head nor body is awaited any more; the others as in `Exchange`. */
  constructor(
    options: Dispatcher.DispatchOptions,
    family: string,
    { limits, search, lease, hasher }: StreamOptions,
    now: number,
    onEnd: (exchange: Exchange) => void,
    onOver: (exchange: Exchange) => void,
  ) {
    const uploaded = new Meter(hasher);
    super({ ...options, body: watchUpload(options.body, uploaded, () => this.#failUpload()) }, family, now, onEnd);
    this.#uploaded = uploaded;
    this.#limits = limits;
    this.#maxBytes = limits.maxResponseBytes;
    this.#wanted = search;
    this.#onOver = onOver;
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#body = new StreamedBody(
      {
        pause: () => (this.#inflater ?? this.controller)?.pause(),
        resume: () => {
          this.activeAt = performance.now();
          (this.#inflater ?? this.controller)?.resume();
        },
        closed: () => this.#breakOff('client_closed'),
        count: (bytes) => lease?.count(bytes),
      },
      hasher,
    );
  }

  get settled(): boolean {
    return this.#settled;
  }

  expire(now: number): void {
    const { fullSince } = this.#body;
    if (fullSince === undefined) {
      if (now - this.activeAt >= this.#limits.idleTimeoutMs) this.fail('timeout', 'idle');
    } else if (now - fullSince >= this.#limits.takeTimeoutMs) this.#breakOff('client_closed');
  }

  /** Called by undici with each piece of the request's body that it writes. */
  onBodySent(chunk: Uint8Array | string): void {
    this.activeAt = performance.now();
    this.#uploaded.add(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  }

  protected onHead(status: number, received: ResponseHeaders): void {
    const codings = contentCodings(received['content-encoding']);
    if (codings === undefined) {
      this.fail('broken_answer', 'content_encoding');
      return;
    }
    if (Number(received['content-length']) > this.#maxBytes) {
      this.fail('too_large', 'content_length');
      return;
    }
    const headers = { ...received };
    if (codings.length > 0) {
      this.#maxBytes = Math.min(this.#maxBytes, this.#limits.maxInflatedBytes);
      this.#inflater = inflateStream(codings, {
        onData: (chunk) => this.#pass(chunk),
        onEnd: () => this.#complete(),
        onError: () => this.#breakOff('upstream_closed'),
        onDrain: () => this.controller?.resume(),
      });
      delete headers['content-encoding'];
      delete headers['content-length'];
    }
    const forms = this.#wanted?.forms;
    const mask = isTextType(received['content-type']);
    this.#search = this.#wanted?.credential.search({ mask, ...(forms !== undefined && { forms }) });
    this.#settle({
      kind: 'stream',
      status,
      headers,
      body: this.#body,
      uploaded: () => this.#uploaded.read(),
      redacted: () => this.#search?.found ?? false,
    });
  }

  protected onChunk(chunk: Buffer): void {
    if (this.#inflater === undefined) this.#pass(chunk);
    else if (!this.#inflater.write(chunk)) this.controller?.pause();
  }

  protected onComplete(): void {
    if (this.#inflater === undefined) this.#complete();
    else this.#inflater.end();
  }

  protected onFailure(failure: Unreachable): void {
    if (this.#settled) this.#end(this.#uploadFailed ? 'client_closed' : (ENDINGS[failure.code] ?? 'upstream_closed'));
    else {
      this.#settle(failure);
      this.#end('upstream_closed');
    }
  }

  /** Passes on bytes that are not the credential and cannot be its beginning. */
  #pass(chunk: Buffer): void {
    if (this.#body.ended !== undefined) return;
    this.#size += chunk.length;
    if (this.#size > this.#maxBytes) {
      this.#breakOff('over_limit');
      return;
    }
    const search = this.#search;
    this.#body.add(search === undefined ? chunk : search.push(chunk));
    if (search?.found && !search.mask) this.#breakOff('credential_found');
  }

  #complete(): void {
    const search = this.#search;
    if (search !== undefined) this.#body.add(search.end());
    this.#end(search?.found && !search.mask ? 'credential_found' : 'complete');
  }

  #failUpload(): void {
    this.#uploadFailed = true;
  }

  /** Ends the exchange from this side and destroys its connection. */
  #breakOff(ended: StreamEnding): void {
    this.#end(ended);
    this.controller?.abort(new OutboundFault('closed', ended));
  }

  #end(ended: StreamEnding): void {
    this.#body.end(ended);
    this.#inflater?.destroy();
    if (this.#over) return;
    this.#over = true;
    this.#onOver(this);
  }

  #settle(answer: StreamedAnswer | Unreachable): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#resolve(answer);
  }
}

/**
 * Reports when the source of a streamed body breaks off, which is then not the upstream's fault. Sends no faster than the bytes are hashed.
 */
function watchUpload(body: Dispatcher.DispatchOptions['body'], meter: Meter, onError: () => void) {
  if (body == null || typeof body === 'string' || body instanceof Uint8Array) return body ?? null;
  async function* pieces() {
    try {
      for await (const piece of body as AsyncIterable<Uint8Array>) {
        yield piece;
        await meter.room();
      }
    } catch (error) {
      onError();
      throw error;
    }
  }
  // undici accepts any iterable; its types list only some.
  return pieces() as unknown as Readable;
}
