// How providers say that a conversation is too long for the model.

/** A limit on the answer (`max_tokens is too large`) is another error. */
const words = new RegExp(
  [
    'context.?length.?exceeded',
    'exceed_context',
    'request_too_large',
    'too_many_(prompt|input)_tokens',
    'maximum (context|prompt|input) length',
    'prompt (is |tokens )?(too long|超长)',
    'prompt exceeds max',
    'input (token )?length.{0,60}(exceed|too long)',
    '(input|prompt) tokens? (count )?.{0,60}exceed',
    'range of input length',
    '(exceed|overflow|(larger|longer|greater) than|too large).{0,60}context',
    'longer than the maximum model length',
    'context.?(window|length|size|limit).{0,40}(exceed|overflow)',
    'exceeded model token limit',
    'total tokens.{0,40}exceed',
    'too many (input |prompt )?tokens',
    'must be less than max_seq_len',
    '`inputs` tokens \\+ `max_new_tokens` must be',
    'max \\d+ tokens per request',
    'input is too long',
    'reduce the length of (the|your) (messages|prompt|input)',
  ].join('|'),
  'i',
)

/** A single file that is too large would be too large in a shorter conversation as well. */
const ofOneFile = /\b(image|file|audio|document|video)s?\b.{0,60}(exceed|too (large|big|long))/i

/** Statuses with another meaning, whatever the message is. */
const meansOther = new Set([401, 402, 403, 404, 429])

/** @param status undefined for an error inside a stream @param text codes and message @param body the whole body */
export function isOverflow(status: number | undefined, text: string, body: string): boolean {
  if (status !== undefined && meansOther.has(status)) return false
  const said = text.trim() === '' ? body : text
  return words.test(said) || (status === 413 && !ofOneFile.test(said))
}
