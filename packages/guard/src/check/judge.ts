// What the rest of core calls to judge a command. Parser and tables are loaded when the first command is judged.
import type { AnalyseOptions, Analysis, Judgement, JudgeOptions } from '../words/types.ts'

export type { Judgement, JudgeOptions } from '../words/types.ts'

const load = () => import('./check-command.ts')

/**
 * Takes a command line apart into the simple commands in it, wherever they stand. The text is read as a shell reads it
 * that is started for this one command (`bash -c`, or `sh -c`; see `shell`), without a terminal.
 *
 * It looks at folders to expand patterns and to follow links, and writes nothing. What another process changes between
 * this look and the run of the command is not seen.
 */
export async function analyseCommand(text: string, options: AnalyseOptions): Promise<Analysis> {
  return (await load()).analyseCommand(text, options)
}

/**
 * Decides about a command line: allowed if all of it only reads what is inside the roots (or is covered by a rule),
 * denied if a part of it is a plain disaster, and asked about otherwise.
 *
 * @example (await judgeCommand('git status && rm -rf build', { cwd, roots: [cwd] })).decision // 'ask'
 */
export async function judgeCommand(text: string, options: JudgeOptions): Promise<Judgement> {
  return (await load()).judgeCommand(text, options)
}

/**
 * Whether one rule allows the whole text: every simple command in it, however deep, must be matched, there may be
 * nothing that is not understood, and no output may go to a file. For several rules together, and for pipes into commands
 * that only read, use `judgeCommand` with `allow`.
 *
 * @example await commandMatches('git commit *', 'git commit -m x; rm y') // false
 */
export async function commandMatches(pattern: string, text: string, options?: AnalyseOptions): Promise<boolean> {
  return (await load()).commandMatches(pattern, text, options)
}

/**
 * Whether a rule that forbids or asks means any command in the text: inside of wrappers, substitutions and scripts, by any
 * path of the program, and behind options that come first (`git -C x push` for `git push *`). `'unknown'` if the text runs
 * something that cannot be followed, so that the rule could mean it (`$cmd`, `… | sh`, `python -c …`): the gate then asks.
 * What a program does by itself, and the files that it reads its orders from, are not looked at.
 */
export async function commandMentions(
  pattern: string,
  text: string,
  options?: AnalyseOptions,
): Promise<boolean | 'unknown'> {
  return (await load()).commandMentions(pattern, text, options)
}

/** Rules to offer with a question about the text; see `suggestFrom`. */
export async function suggestRules(text: string, options?: AnalyseOptions): Promise<readonly string[]> {
  return (await load()).suggestRules(text, options)
}
