// The functions of the permission gate for tools that run command lines.
import { commandPatternProblem } from '../rules/reading.ts'
import type { CommandOptions } from '../words/types.ts'
import { type CommandLine, checkLine, lineMatches, lineMentions, readLine, suggestFor } from './check-command.ts'

/** The object of one decision of the gate; see `DecisionContext` of `@oxbow/core`. */
interface Context {
  readonly mode: string
}

type Input = Readonly<Record<string, unknown>>
type RuleKind = 'allow' | 'ask' | 'deny'

export interface CommandGuard {
  readonly check: (
    input: Input,
    context: Context,
  ) => { readonly decision: 'allow' | 'deny'; readonly reason: string } | undefined
  readonly matches: (pattern: string, input: Input, kind: RuleKind, context: Context) => boolean | 'unknown'
  readonly checkPattern: (pattern: string, kind?: RuleKind) => string | undefined
  readonly suggest: (input: Input) => readonly string[]
}

/**
 * The `check`, `matches`, `checkPattern` and `suggest` of a tool whose argument `command` is a command line. What only
 * reads runs, a disaster is denied, and the rest is left to rules and mode; in `accept-edits` output may go to harmless
 * files of the roots. For one decision the command is taken apart once, however many rules there are.
 *
 * @param place where the command runs, and what it may use
 * @example tool({ ...commandGuard({ cwd, roots: [cwd] }), name: 'run_command', … })
 */
export function commandGuard(place: Omit<CommandOptions, 'allow' | 'allowEdits'>): CommandGuard {
  // A line ends with its decision: files change.
  const lines = new WeakMap<Context, CommandLine>()
  const lineOf = ({ command }: Input, context: Context): CommandLine => {
    const text = String(command)
    const known = lines.get(context)
    if (known?.text === text) return known
    const line = readLine(text, place)
    lines.set(context, line)
    return line
  }
  return {
    check(input, context) {
      const { decision, reasons } = checkLine(lineOf(input, context), {
        ...place,
        allowEdits: context.mode === 'accept-edits',
      })
      return decision === 'ask' ? undefined : { decision, reason: reasons[0]?.message ?? 'It only reads.' }
    },
    matches: (pattern, input, kind, context) =>
      (kind === 'allow' ? lineMatches : lineMentions)(pattern, lineOf(input, context)),
    checkPattern: commandPatternProblem,
    suggest: ({ command }) => suggestFor(readLine(String(command), place)),
  }
}
