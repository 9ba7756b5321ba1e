/** Decompresses a streamed answer as it arrives. */

import zlib from 'node:zlib';
import { present } from '../runtime/present.ts';
import type { Coding } from './inflate.ts';

/** A destination of bytes. */
export type Sink = {
  /** Returns false for back-pressure: write again after `onDrain`. */
  write(chunk: Buffer): boolean;
  end(): void;
};

export type Inflater = Sink & {
  /** Stops and resumes output. */
  pause(): void;
  resume(): void;
  destroy(): void;
};

const OPTIONS = { chunkSize: 64 * 1024 };

/** `onData` gets the output, `onEnd` its end, `onError` corrupt or truncated input; `onDrain`: more may be written. */
export type InflaterEvents = { onData(chunk: Buffer): void; onEnd(): void; onError(): void; onDrain(): void };

/** Decodes the codings, last one first. `codings`: at least one, in the order in which they were applied. */
export function inflateStream(codings: readonly Coding[], events: InflaterEvents): Inflater {
  const coding = present(codings[0], 'coding');
  const outer = codings.slice(1);
  if (outer.length === 0) return undoOne(coding, events);
  const inner = undoOne(coding, { ...events, onDrain: () => first.resume() });
  const first: Inflater = inflateStream(outer, {
    onData: (chunk) => {
      if (!inner.write(chunk)) first.pause();
    },
    onEnd: inner.end,
    onError: events.onError,
    onDrain: events.onDrain,
  });
  return {
    write: first.write,
    end: first.end,
    pause: inner.pause,
    resume: inner.resume,
    destroy: () => {
      first.destroy();
      inner.destroy();
    },
  };
}

function undoOne(coding: Coding, events: InflaterEvents): Inflater {
  let stream: zlib.Gunzip | zlib.BrotliDecompress | zlib.Inflate | zlib.InflateRaw | undefined;
  let isPaused = false;
  const open = (first: Buffer) => {
    const opened = decoderOf(coding, first);
    opened.on('data', events.onData);
    opened.on('end', events.onEnd);
    opened.on('error', events.onError);
    opened.on('drain', events.onDrain);
    if (isPaused) opened.pause();
    return opened;
  };
  return {
    write: (chunk) => {
      stream ??= open(chunk);
      return stream.write(chunk);
    },
    end: () => {
      // An empty body is valid in any coding.
      if (stream === undefined) events.onEnd();
      else stream.end();
    },
    pause: () => {
      isPaused = true;
      stream?.pause();
    },
    resume: () => {
      isPaused = false;
      stream?.resume();
    },
    destroy: () => stream?.destroy(),
  };
}

function decoderOf(coding: Coding, first: Buffer) {
  if (coding === 'gzip') return zlib.createGunzip(OPTIONS);
  if (coding === 'br') return zlib.createBrotliDecompress(OPTIONS);
  // Many servers send raw deflate data under this name; zlib data begins with method 8 (RFC 1950 §2.2).
  return ((first[0] ?? 0) & 0x0f) === 8 ? zlib.createInflate(OPTIONS) : zlib.createInflateRaw(OPTIONS);
}
