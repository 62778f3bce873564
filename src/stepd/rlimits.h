/* rlimits.h - resource limits, nice value, core size and oom_score_adj of tasks, as the submission carried them */
#pragma once
struct step;
/* In the child, before it becomes the user. */
void limits_apply(const struct step *s);
