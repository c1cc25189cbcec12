// How much of a model's context a text takes, roughly: the same for every model, cheap, and additive, so that the size of any
// slice follows from sums over its characters.

/** Scripts without spaces between words; about one token a character. */
export const UNSPACED =
  '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}'

const unspaced = new RegExp(`[${UNSPACED}]`, 'u')

/** Quarters of a token that a UTF-16 unit takes. */
function quarters(unit: string): number {
  const code = unit.charCodeAt(0)
  if (code < 0x80) return 1
  if (code < 0x0e00) return 2
  if (code >= 0xd800 && code < 0xe000) return 2
  return unspaced.test(unit) ? 4 : 2
}

/** `sums[i]` is the size of the first `i` UTF-16 units of the text, in quarters of a token. */
export function sizesOf(text: string): Float64Array {
  const sums = new Float64Array(text.length + 1)
  for (let i = 0; i < text.length; i++) sums[i + 1] = sums[i]! + quarters(text[i]!)
  return sums
}

/** About how many tokens a text is: a quarter per ASCII character, one per Chinese character. */
export function estimatePassageTokens(text: string): number {
  return Math.ceil(sizesOf(text).at(-1)! / 4)
}
