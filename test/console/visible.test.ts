/** Characters in foreign texts that are shown by code point or pointed out, and ordinary characters of many languages that are not. */
import { expect, test } from 'vitest';
import { oddities, visible, visibleLine } from '../../broker/console/static/visible.js';

test.each([
  'Please wait…',
  'Acme™, 10 m², ½ price, 1º piso, nº 4, 20 ℃',
  'Prix : 10\u00a0€ et 5\u202f% de remise',
  '（東京）：１階ではありません！'.replace('１', '1'),
  'Grüße aus München, ñandú, Ελλάδα',
  '①②③ ☎',
])('ordinary typography is not pointed out: %s', (text) => {
  expect(oddities(text)).toEqual([]);
});

test.each([
  ['\uff50ay', 'pay'],
  ['\u{1d429}ay', 'pay'],
  ['\ufb01nance', 'finance'],
  ['pay \uff11000', 'pay 1000'],
  ['Chapter \u2160', 'Chapter I'],
])('look-alike letters are pointed out: %s', (text, plain) => {
  expect(oddities(text)).toEqual([`It contains look-alike characters; in plain ones it is “${plain}”.`]);
});

test.each(['👩\u200d💻', '👩🏽\u200d🚀', '❤️\u200d🔥', '1\ufe0f\u20e3', 'می\u200cخواهم', 'क्\u200dष'])(
  'joiners and variation selectors are kept where they belong: %s',
  (text) => {
    expect(visible(text)).toBe(text);
    expect(visibleLine(text)).toBe(text);
  },
);

test.each([
  ['a\u200db', 'a⟦U+200D⟧b'],
  ['👩\u200d', '👩⟦U+200D⟧'],
  ['👩\u200dx', '👩⟦U+200D⟧x'],
  ['👍\ufe0f\ufe0f', '👍\ufe0f⟦U+FE0F⟧'],
  ['1\ufe0f', '1⟦U+FE0F⟧'],
  ['می\u200c\u200cخواهم', 'می⟦U+200C⟧⟦U+200C⟧خواهم'],
  ['می\u200c', 'می⟦U+200C⟧'],
  ['می\u200cpay', 'می⟦U+200C⟧pay'],
])('joiners and variation selectors are shown by code point elsewhere: %j', (text, shown) => {
  expect(visible(text)).toBe(shown);
});
