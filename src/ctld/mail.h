/* mail.h - runs MailProg for the mails the core asks for (tables: --mail-type; core/mail.c decides) */
#pragma once
#include "ctld/ctld.h"

/* FX_MAIL: queued, sent when what it tells of is on disk. */
void mail_add(struct ctld *d, const struct core_effect *e);
