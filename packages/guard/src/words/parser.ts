// Two checks around the shell parser: that a text is what it looks like, and that all of it was read.
import { forEachChild, type SyntaxNode } from 'unbash'
import type { Construct } from './types.ts'

/** Longer than anything that a person would read before saying yes. A longer text is not even parsed. */
export const LONGEST = 20_000

/** Pictures may be put together of several characters, some of which cannot be seen alone. */
const PICTURE = /\p{Extended_Pictographic}\ufe0f?(?:\u200d\p{Extended_Pictographic}\ufe0f?)*/gu

/** Characters that make a text look like something else than the shell reads. */
const DECEPTIVE = /\p{Cc}|\p{Cf}|\p{Co}|\p{Z}|\p{Default_Ignorable_Code_Point}|\u2800/gu

/** The fault in the characters of a text, before parsing. */
export function deceptive(source: string): Construct | undefined {
  if (source.length > LONGEST)
    return {
      kind: 'too long',
      text: `${source.slice(0, 40)}…`,
      why: `The command has more than ${LONGEST} characters.`,
    }
  if (!source.isWellFormed())
    return { kind: 'characters', text: source.slice(0, 80), why: 'The command is not well-formed Unicode.' }
  for (const [character] of source.replace(PICTURE, 'x').matchAll(DECEPTIVE)) {
    if (character === ' ' || character === '\n' || character === '\t') continue
    const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')
    return {
      kind: 'characters',
      text: source.slice(0, 80),
      why: `The command has the control or invisible character U+${code}, so it may not be what it looks like.`,
    }
  }
  return undefined
}

const GAP_TOKEN =
  /\\\n|[ \t\n]|;;?&?|&&?|\|[|&]?|#[^\n]*|(?:if|then|elif|else|fi|for|in|do|done|while|until|case|esac|function|select|coproc)(?![^\s;&|()])/y

function isGap(text: string): boolean {
  GAP_TOKEN.lastIndex = 0
  while (GAP_TOKEN.lastIndex < text.length) if (!GAP_TOKEN.test(text)) return false
  return true
}

/** Nodes that are one token here; what is inside them is checked where their words are read. */
const WHOLE = new Set([
  'Word',
  'Assignment',
  'Redirect',
  'HereString',
  'TestCommand',
  'ArithmeticCommand',
  'Time',
  'Negation',
])

/**
 * Proves that no part of the text fell through: what the tree does not cover may only be blanks, operators, reserved
 * words and comments, and brackets only where they belong to a node. A parser that mends broken input, as this one
 * does, could otherwise drop a command unnoticed.
 */
export function uncovered(script: SyntaxNode, source: string, from: number, to: number): string | undefined {
  const spans: (readonly [number, number])[] = []
  const bracket = (at: number, ...chars: readonly string[]): void => {
    if (chars.includes(source[at] ?? '')) spans.push([at, at + 1])
  }
  const visit = (node: SyntaxNode): void => {
    if (WHOLE.has(node.type)) {
      spans.push([node.pos, node.end])
      return
    }
    switch (node.type) {
      case 'HereDoc':
        spans.push([node.pos, node.delimiter?.end ?? node.end], [node.body.pos, node.body.end])
        if (node.closing !== undefined) spans.push([node.closing.pos, node.closing.end])
        return
      case 'Subshell':
        bracket(node.pos, '(')
        bracket(node.end - 1, ')')
        break
      case 'BraceGroup':
        bracket(node.pos, '{')
        bracket(node.end - 1, '}')
        break
      case 'CaseItem': {
        const last = node.pattern.at(-1)
        if (last === undefined) break
        const close = source.indexOf(')', last.end)
        if (/^[ \t\n]*$/.test(source.slice(last.end, close))) bracket(close, ')')
        bracket(node.pos, '(')
        break
      }
      case 'Function':
        spans.push([node.name.end, node.body.pos])
        break
      case 'ArithmeticFor':
        spans.push([node.pos, node.body.pos])
        break
    }
    forEachChild(node, visit)
  }
  visit(script)
  spans.sort(([one], [other]) => one - other)
  let at = from
  for (const [pos, end] of [...spans, [to, to] as const]) {
    const gap = source.slice(at, Math.max(at, pos))
    if (!isGap(gap)) return gap.trim()
    at = Math.max(at, end)
  }
  return undefined
}
