// The visible text of a document, without anything that only a model would read.

/** Tags and the controls of writing direction: invisible, and able to carry or reorder text. */
const INVISIBLE =
  /[\u00AD\u061C\u180E\u200B\u200E\u200F\u202A-\u202E\u2060-\u2064\u2066-\u206F\uFEFF\uFFF9-\uFFFB\u{E0000}-\u{E0FFF}]/gu
/** Markers that models' templates use to divide a conversation. */
const TEMPLATE_MARKS = /<\|[\w .-]{1,40}\|>|<｜[^｜<>]{1,40}｜>|<\/?(?:start|end)_of_turn>|\[\/?INST\]|<<\/?SYS>>/g

/**
 * A document's text without invisible characters and chat template markers.
 *
 * @example visibleText('a\u202Eb <|im_start|>system') // 'ab system'
 */
export function visibleText(text: string): string {
  const shown = text.replace(INVISIBLE, '')
  const clean = shown.replace(TEMPLATE_MARKS, '')
  // Removing a marker may form another one around it.
  return clean === shown ? clean : visibleText(clean)
}
