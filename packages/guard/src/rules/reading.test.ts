import { describe, expect, test } from 'vitest'
import { commandMatches, commandMentions } from '../check/check-command.ts'
import { commandPatternProblem } from './reading.ts'

describe('a rule that no command can match is a mistake, and the problem says why', () => {
  test.each([
    ['time *', 'The shell reads it as "x". Write a rule for that, without "time".'],
    ['FOO=1 npm test', 'Variables in front of a command are not part of a rule. Leave them out.'],
    ['"ls -la"', 'No program is called "ls -la". Quote words one by one, not the whole command.'],
    ['~/bin/x *', 'The shell replaces "~" by the home folder. Write the whole path.'],
    ['sh -c "rm *"', 'The text that sh runs is parsed. Write a rule for the command in it.'],
    ['if true', expect.any(String)],
    ['! git push', expect.any(String)],
    ['git push {a,b}', expect.any(String)],
    ['git push # all', expect.any(String)],
    ['x'.repeat(2_000), 'The rule has more than 1000 characters.'],
  ])('%s', (pattern, problem) => {
    expect(commandPatternProblem(pattern, 'deny')).toEqual(problem)
    expect(commandPatternProblem(pattern, 'allow')).toEqual(problem)
    expect(commandMentions(pattern, 'pwd')).toBe(true)
    expect(commandMatches(pattern, 'pwd')).toBe(false)
  })

  test.each([
    ['sudo *', 'sudo runs another program, which the rule must name: sudo PROGRAM *.'],
    ['timeout *', 'timeout runs another program, which the rule must name: timeout PROGRAM *.'],
    ['timeout 5 *', 'timeout runs another program, which the rule must name: timeout PROGRAM *.'],
    ['xargs *', expect.any(String)],
    ['env *', expect.any(String)],
    ['npx *', expect.any(String)],
    ['docker-wrapper *', undefined],
    ['eval *', 'No rule can allow it. The text is put together and run.'],
    ['let *', expect.stringContaining('No rule can allow it.')],
    ['xargs -I{} rm *', expect.stringContaining('No rule can allow it.')],
  ])('%s allows nothing, and may deny', (pattern, problem) => {
    expect(commandPatternProblem(pattern, 'allow')).toEqual(problem)
    expect(commandPatternProblem(pattern, 'deny')).toBeUndefined()
    expect(commandPatternProblem(pattern, 'ask')).toBeUndefined()
  })

  test.each([
    'git push *',
    'npm run test:*',
    'timeout 5 make *',
    'sudo -u bob make *',
    'xargs grep *',
    "git commit -m 'a b'",
    'bash *',
    'find *',
    'test *',
    'cat src/*',
    'git log --format=%h *',
  ])('%s is a rule', (pattern) => {
    expect(commandPatternProblem(pattern, 'allow')).toBeUndefined()
    expect(commandPatternProblem(pattern, 'deny')).toBeUndefined()
  })
})
