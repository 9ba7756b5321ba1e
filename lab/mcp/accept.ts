/** Reduces the Accept header of MCP clients to the two types of an answer. */

const TYPES = ['application/json', 'text/event-stream'];

/**
 * Sets in Accept those of the two types that it covers, both when it is missing or empty (RFC 9110 section 12.5.1): the SDK only searches the header
 * for the two names, so it would refuse ranges and other letter case, and accept a type of quality 0.
 */
export function nameAcceptedTypes(headers: Headers): void {
  const ranges = rangesOf(headers.get('accept') || '*/*');
  const qualityOf = (type: string) =>
    ranges.get(type) ?? ranges.get(`${type.split('/', 1)[0]}/*`) ?? ranges.get('*/*') ?? 0;
  headers.set('accept', TYPES.filter((type) => qualityOf(type) > 0).join(', '));
}

/** Returns the quality of each media range. Of one that is there twice the higher one counts. */
function rangesOf(header: string): Map<string, number> {
  const ranges = new Map<string, number>();
  for (const range of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    const given = parameters.find((parameter) => parameter.startsWith('q='));
    const quality = given === undefined ? 1 : Number(given.slice('q='.length)) || 0;
    ranges.set(name, Math.max(quality, ranges.get(name) ?? 0));
  }
  return ranges;
}
