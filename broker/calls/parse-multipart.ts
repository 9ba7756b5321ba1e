/**
 * Parses a multipart body (`multipart/form-data`, RFC 7578) into an object: fields as texts, files as their name, type, size and hash.
 * Strict: a body that two readers may read differently is not read.
 */

import { createHash } from 'node:crypto';
import { MEDIA_TYPE } from '../egress/parts.ts';
import { type JsonObject, type JsonValue, UnreadBody } from '../policy/facts.ts';
import { FormTree, GAPS } from './parse-form.ts';

export const MAX_PARTS = 200;
const MAX_HEAD_LINES = 4;
/** RFC 2046 section 5.1.1, as clients choose boundaries. Without a comma, at which Rack ends even a quoted one. */
const TYPE = /^multipart\/[a-z-]{1,40};\s*boundary=(?:"([A-Za-z0-9'()+_./:=?-]{1,70})"|([A-Za-z0-9'+_.-]{1,70}))\s*$/i;
const DISPOSITION = /^form-data; name="([^"]+)"(?:; filename="([^"]*)")?$/;
/** Printable, without characters that only some readers unescape. */
export const PART_NAME = /^[^"\\%\p{Cc}]+$/u;
export const FILE_NAME = /^[^"\\%\p{Cc}]*$/u;
const FIELD_TYPE = /^text\/plain(?:;\s*charset="?utf-8"?)?$/i;
const NO_CODING = /^(?:7bit|8bit|binary)$/i;

export const unreadParts = (what: string): UnreadBody => new UnreadBody(`a body in parts with ${what} is not read`);

/** Returns the boundary in a multipart `Content-Type`; undefined when there is none, or readers may find another. */
export function boundaryOf(type: string): string | undefined {
  const [, quoted, plain] = TYPE.exec(type) ?? [];
  return quoted ?? plain;
}

/** @param type the body's `Content-Type` */
export function parseMultipart(type: string, bytes: Buffer): JsonObject | UnreadBody {
  const boundary = /^multipart\/form-data;/i.test(type) ? boundaryOf(type) : undefined;
  if (boundary === undefined) return unreadParts('no plain boundary');
  // One character per byte, because bytes are compared.
  const text = bytes.toString('latin1');
  const [before, ...parts] = text.split(`--${boundary}`);
  const end = parts.pop();
  if (before !== '' || (end !== '--' && end !== '--\r\n')) return unreadParts('something around its parts');
  if (parts.length > MAX_PARTS) return unreadParts(`more than ${MAX_PARTS} parts`);
  const tree = new FormTree();
  for (const part of parts) {
    if (!part.startsWith('\r\n') || !part.endsWith('\r\n')) return unreadParts('a boundary inside of a line');
    const found = readPart(part.slice(2, -2));
    if (found instanceof UnreadBody) return found;
    const problem = tree.add(found.name, found.value);
    if (problem !== undefined) return unreadParts(problem);
  }
  return tree.toObject() ?? unreadParts(GAPS);
}

function readPart(part: string): { name: string; value: JsonValue } | UnreadBody {
  const at = part.indexOf('\r\n\r\n');
  if (at < 0) return unreadParts('a part without a head');
  const content = part.slice(at + 4);
  const headers = new Map<string, string>();
  const lines = part.slice(0, at).split('\r\n');
  if (lines.length > MAX_HEAD_LINES) return unreadParts('a long head of a part');
  for (const line of lines) {
    const [, name = '', value = ''] = /^([A-Za-z-]+):([^\r\n\0]*)$/.exec(line) ?? [];
    if (name === '' || headers.has(name.toLowerCase())) return unreadParts('a head of a part that is not plain');
    headers.set(name.toLowerCase(), value.replace(/^[ \t]+/, '').trimEnd());
  }
  const {
    'content-disposition': disposition = '',
    'content-type': type,
    'content-transfer-encoding': coding = 'binary',
    'content-length': length,
    ...others
  } = Object.fromEntries(headers);
  const [, name, filename] = DISPOSITION.exec(utf8(disposition) ?? '') ?? [];
  if (name === undefined || !PART_NAME.test(name) || !FILE_NAME.test(filename ?? '') || Object.keys(others).length > 0)
    return unreadParts('a head of a part that is not plain');
  if (!NO_CODING.test(coding)) return unreadParts('a coding of a part');
  if (length !== undefined && length !== String(content.length)) return unreadParts('a part of another length');
  if (filename !== undefined) {
    // aiohttp and the CGI modules of Ruby and Python read this as a text. Browsers send an empty one when no file was chosen.
    if (filename === '' && content !== '') return unreadParts('a file without a name');
    if (type !== undefined && !MEDIA_TYPE.test(type)) return unreadParts('a media type that is none');
    return { name, value: knownFile(filename, type ?? 'application/octet-stream', Buffer.from(content, 'latin1')) };
  }
  if (type !== undefined && !FIELD_TYPE.test(type)) return unreadParts('a field of another media type');
  const value = utf8(content);
  return value === undefined || value.includes('\0') ? unreadParts('a field that is no text') : { name, value };
}

/** The description of a file that rules and people see. */
export const knownFile = (filename: string, type: string, content: Buffer): JsonObject => ({
  filename,
  content_type: type,
  bytes: content.length,
  sha256: createHash('sha256').update(content).digest('hex'),
});

/** Decodes UTF-8; undefined when the bytes are malformed. */
function utf8(bytes: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(bytes, 'latin1'));
  } catch {
    return undefined;
  }
}
